import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import type { RuleDraft } from '../types.ts'

interface PartsProps {
  readonly draft: RuleDraft
  /** Parts that are asked to be open, of which the rule may still be made. */
  readonly asked: readonly string[] | undefined
  /** As it came. */
  readonly method: string
  readonly url: string
  readonly onOpen: (open: readonly string[]) => void
}

/** What the rule takes beside what was seen, part by part, with what opening one would add. */
export function Parts({ draft, asked, method, url, onOpen }: PartsProps) {
  const { switches } = draft
  const wanted = asked ?? switches.filter(({ open }) => open).map(({ part }) => part)
  const toggle = (part: string) =>
    onOpen(wanted.includes(part) ? wanted.filter(one => one !== part) : [...wanted, part])
  return (
    <Table
      label="Parts of the rule"
      items={switches}
      columns={[
        { name: 'Part', kind: 'row', cell: ({ part }) => part },
        { name: 'Seen', kind: 'wide', cell: ({ part }) => <Code text={seenOf(part, draft, method, url)} /> },
        {
          name: 'The rule takes',
          cell: ({ part, open }) => <Code text={open ? openOf(part, draft) : seenOf(part, draft, method, url)} />,
        },
        {
          name: 'Open',
          cell: ({ part }) => (
            <input
              type="checkbox"
              aria-label={`Open ${part}`}
              checked={wanted.includes(part)}
              onChange={() => toggle(part)}
            />
          ),
        },
        {
          name: 'Recorded requests this adds',
          cell: ({ adds, denied }) => (
            <>
              {adds}
              {denied > 0 && <span class="bad-text">, {denied} of them denied</span>}
            </>
          ),
        },
      ]}
    />
  )
}

const Code = ({ text }: { readonly text: string }) => <Text value={text} limit={200} as="code" />

const valuePlaces: Readonly<Record<string, RegExp>> = {
  tool: /^(?:mcp\.(?:tool|resource|prompt)|llm\.model)$/,
  fields: /@keys$|^graphql\.fields$/,
}

/** Index of the segment, from 0; undefined: the part is none. */
function segmentOf(part: string): number | undefined {
  const [, number] = /^segment (\d+)$/.exec(part) ?? []
  return number === undefined ? undefined : Number(number) - 1
}

function seenOf(part: string, draft: RuleDraft, method: string, url: string): string {
  // Without `URL`, which would write the path in another way.
  const [, origin = '', path = '/', search = ''] = /^([a-z]+:\/\/[^/?#]*)([^?#]*)([^#]*)/i.exec(url) ?? []
  const segment = segmentOf(part)
  if (segment !== undefined) return path.slice(1).split('/')[segment] ?? ''
  if (part === 'method') return method
  if (part === 'host') return origin
  const values = valuesOf(draft, valuePlaces[part] ?? /^$/).map(value => String(value))
  const names = part === 'fields' ? [...new URLSearchParams(search).keys()].map(name => `?${name}`) : []
  return [...names, ...values].join(', ') || 'none'
}

/** What an open part takes. */
function openOf(part: string, draft: RuleDraft): string {
  const segment = segmentOf(part)
  const [pattern] = valuesOf(draft, /^input\.path$/)
  if (segment === undefined || typeof pattern !== 'string') return 'any'
  const taken = pattern.slice(1).split('/')[segment] ?? '*'
  return taken === '*' ? 'any' : taken
}

/** Values of the conditions on some fields. */
function valuesOf({ rule }: RuleDraft, fields: RegExp): readonly unknown[] {
  const conditions = rule['conditions'] as readonly { readonly field?: string; readonly value?: unknown }[]
  return conditions.flatMap(({ field = '', value }) => (fields.test(field) ? [value].flat() : []))
}
