import type { ComponentChildren } from 'preact'
import { Table } from './table.tsx'
import { Cut } from './text.tsx'

/** Instead of the value of a field that the gateway adds. */
export const added = Symbol('added')

/** Undefined: a name without an equals sign. */
type FieldValue = string | typeof added | undefined

interface PairsProps {
  readonly caption: string
  readonly pairs: readonly (readonly [name: string, value: FieldValue])[]
  /** Kind of the texts; the gateway redacts and escapes its own. */
  readonly kind?: 'escaped' | 'exact'
}

/** Names and values, in their order. */
export function Pairs({ caption, pairs, kind = 'escaped' }: PairsProps) {
  return (
    <PairTable
      caption={caption}
      items={pairs}
      name={([name]) => name !== '' && <Cut pieces={[{ text: name }]} kind={kind} first={longestName} />}
      value={([, value]) => value !== undefined && <Value value={value} kind={kind} />}
    />
  )
}

/** Characters of a name and of a value that are drawn at once. */
export const longestName = 300
export const longestValue = 8_192

interface PairTableProps<T> {
  readonly caption?: string
  /** What it is, where no caption says so. */
  readonly label?: string
  readonly items: readonly T[]
  /** False: there is none. */
  readonly name: (item: T) => ComponentChildren
  readonly value: (item: T) => ComponentChildren
}

export function PairTable<T>({ items, name, value, ...named }: PairTableProps<T>) {
  return (
    <Table
      {...named}
      hidesNames
      items={items}
      columns={[
        { name: 'Name', kind: 'row', cell: item => name(item) || <em>no name</em> },
        { name: 'Value', cell: item => value(item) || <em>no value</em> },
      ]}
    />
  )
}

interface ValueProps {
  readonly value: Exclude<FieldValue, undefined>
  readonly kind: 'escaped' | 'exact'
}

function Value({ value, kind }: ValueProps) {
  if (value === added) return <span class="redacted">added by the gateway</span>
  if (kind === 'exact') return <Cut pieces={[{ text: value }]} kind="exact" first={longestValue} />
  if (value === '[REDACTED]') return <span class="redacted">redacted here, sent as it came</span>
  return <Cut pieces={redactedIn(value)} kind="escaped" first={longestValue} />
}

/** What the gateway keeps from people is marked within a value, too. */
function redactedIn(value: string) {
  return value
    .split(/(\[REDACTED\])/)
    .map(text => (text === '[REDACTED]' ? { text, detector: 'redacted here' } : { text }))
}
