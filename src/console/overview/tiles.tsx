type Tile = readonly [name: string, value: string | number, isBad?: boolean]

/** Numbers in a row of boxes. */
export function Tiles({ label, tiles }: { readonly label: string; readonly tiles: readonly Tile[] }) {
  return (
    <dl class="tiles" aria-label={label}>
      {tiles.map(([name, value, isBad = false]) => (
        <div key={name} class="tile">
          <dt>{name}</dt>
          <dd class={isBad ? 'bad-text' : undefined}>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
