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
    <Table
      caption={caption}
      hidesNames
      items={pairs}
      columns={[
        {
          name: 'Name',
          kind: 'row',
          cell: ([name]) =>
            name === '' ? <em>no name</em> : <Cut pieces={[{ text: name }]} kind={kind} first={300} />,
        },
        { name: 'Value', cell: ([, value]) => <Value value={value} kind={kind} /> },
      ]}
    />
  )
}

interface ValueProps {
  readonly value: FieldValue
  readonly kind: 'escaped' | 'exact'
}

function Value({ value, kind }: ValueProps) {
  if (value === undefined) return <em>no value</em>
  if (value === added) return <span class="redacted">added by the gateway</span>
  if (kind === 'exact') return <Cut pieces={[{ text: value }]} kind="exact" first={8_192} />
  if (value === '[REDACTED]') return <span class="redacted">redacted here, sent as it came</span>
  return <Cut pieces={redactedIn(value)} kind="escaped" first={8_192} />
}

/** What the gateway keeps from people is marked within a value, too. */
function redactedIn(value: string) {
  return value
    .split(/(\[REDACTED\])/)
    .map(text => (text === '[REDACTED]' ? { text, detector: 'redacted here' } : { text }))
}
