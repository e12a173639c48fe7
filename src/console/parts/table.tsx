import type { ComponentChildren } from 'preact'
import { useSome } from './some.tsx'

export interface Column<T> {
  readonly name: ComponentChildren
  readonly cell: (item: T, index: number) => ComponentChildren
  /** `row`: it names the row. `number`: to the right. `wide`: on wide screens only. */
  readonly kind?: 'row' | 'number' | 'wide'
}

interface TableProps<T> {
  readonly caption?: ComponentChildren
  /** What it is, where no caption says so. */
  readonly label?: string
  readonly columns: readonly Column<T>[]
  /** Where values speak for themselves, their names are for screen readers alone. */
  readonly hidesNames?: boolean
  readonly items: readonly T[]
  readonly isBusy?: boolean
}

/** A row for each item. Of many, the first are drawn, and how many follow is said. */
export function Table<T>({ caption, label, columns, hidesNames = false, items, isBusy }: TableProps<T>) {
  const [shown, more] = useSome(items)
  return (
    <table class="grid" aria-label={label} aria-busy={isBusy}>
      {caption !== undefined && <caption>{caption}</caption>}
      <thead class={hidesNames ? 'hidden' : undefined}>
        <tr>
          {columns.map(({ name, kind }) => (
            <th scope="col" class={kind === 'wide' ? 'wide-only' : undefined}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {shown.map((item, index) => (
          <tr>
            {columns.map(({ cell, kind }) =>
              kind === 'row' ? (
                <th scope="row">{cell(item, index)}</th>
              ) : (
                <td class={kind && { number: 'number', wide: 'wide-only' }[kind]}>{cell(item, index)}</td>
              ),
            )}
          </tr>
        ))}
        {more && (
          <tr>
            <td colSpan={columns.length}>{more}</td>
          </tr>
        )}
      </tbody>
    </table>
  )
}
