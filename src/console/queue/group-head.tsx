import { Text } from '../parts/text.tsx'
import { arrange, filter, type Section, wordFor } from './arrangement.ts'
import { chooseAll } from './choice.ts'

/** Above the rows of a group: what they share, how many they are, and what can be done with all of them. */
export function GroupHead({ section, top }: { readonly section: Section; readonly top: number }) {
  const { by, name, rows } = section
  const only = () =>
    by !== undefined && by !== 'arrived' && arrange({ q: `${filter.peek()} ${wordFor(by, name)}`.trim() })
  return (
    <li class="group-head" style={{ transform: `translateY(${top}px)` }}>
      <Text value={name} limit={80} as="strong" />
      <span class="hint">{rows.length}</span>
      <button type="button" class="plain" onClick={() => chooseAll(rows)}>
        Select
      </button>
      {by === 'arrived' ? (
        <button type="button" class="plain" onClick={() => arrange()}>
          Sort in
        </button>
      ) : (
        <button type="button" class="plain" onClick={only}>
          Only these
        </button>
      )}
    </li>
  )
}
