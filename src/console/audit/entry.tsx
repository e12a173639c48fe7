import { useState } from 'preact/hooks'
import { When } from '../parts/frame.tsx'
import { Said, Text } from '../parts/text.tsx'
import { Json } from '../request/json.tsx'
import { hrefOf } from '../router.ts'
import { plural } from '../text.ts'
import type { AuditRecord } from '../types.ts'
import { sentences } from './sentences.ts'

interface EntryProps {
  readonly entry: AuditRecord
  /** Names of agents by their id, as far as they are known. */
  readonly names: ReadonlyMap<string, string>
  /** Held requests by their id, as far as they are known. */
  readonly told: ReadonlyMap<string, Told>
}

/** What was recorded of the requests of a rule when it was saved. */
const evidenceText = ({ rule, count, days }: SavedEvidence): string =>
  `rule ${rule}: seen ${plural(count, 'time')} on ${plural(days, 'day')}`

/** What a held request asks for, and the rule that held it. */
export interface Told {
  readonly what: string
  readonly rule: string | null | undefined
}

/** One entry, as a sentence. Its details and hashes are drawn when it is opened. */
export function Entry({ entry, names, told }: EntryProps) {
  const { seq, timestamp, actor, action, subject, requestId, details, previous, hash } = entry
  const [isOpen, setOpen] = useState(false)
  return (
    <li class="record entry">
      <span class="record-what">
        <span class="hint seq">{seq}</span> <Who id={actor} names={names} /> <Did action={action} />{' '}
        <Subject
          action={action}
          subject={subject}
          known={names.get(subject) ?? told.get(subject)?.what ?? asked(details)}
        />
        <Details details={{ rule: told.get(subject)?.rule, ...details }} names={names} />
      </span>
      <When at={timestamp} />
      <button type="button" class="plain" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? 'Less' : 'Details'}
      </button>
      {isOpen && (
        <div class="opened">
          <p class="hint">
            <code>{action}</code>
          </p>
          <Json value={details} />
          <dl class="lines">
            <Pair name="Time" value={timestamp} />
            <Pair name="Request" value={requestId ?? 'none'} />
            <Pair name="Hash" value={hash} />
            <Pair name="Follows" value={previous} />
          </dl>
        </div>
      )}
    </li>
  )
}

function Pair({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt class="hint">{name}</dt>
      <dd>
        <Text value={value} as="code" />
      </dd>
    </div>
  )
}

function Who({ id, names }: { readonly id: string; readonly names: ReadonlyMap<string, string> }) {
  if (!isAgent(id)) return <Text value={id === 'gateway' ? 'The gateway' : id} limit={120} />
  return (
    <a class="linked" href={hrefOf('agents', id)}>
      <Text value={names.get(id) ?? id} limit={120} />
    </a>
  )
}

const Did = ({ action }: { readonly action: string }) => (
  <strong>{Object.hasOwn(sentences, action) ? sentences[action] : `did ${action} to`}</strong>
)

interface SavedEvidence {
  readonly rule: string
  readonly count: number
  readonly days: number
}

/** The members of the details that people look for first. */
function Details({
  details,
  names,
}: {
  readonly details: AuditRecord['details']
  readonly names: EntryProps['names']
}) {
  const { rule, comment, agentId, status, outcome, evidence } = details as Readonly<Record<string, unknown>>
  const parts = [
    ...(typeof agentId === 'string' ? [`of ${names.get(agentId) ?? agentId}`] : []),
    ...(typeof rule === 'string' ? [`under the rule ${rule}`] : []),
    ...(Array.isArray(evidence) ? evidence.map(evidenceText) : []),
    ...[outcome, status].flatMap(one => (typeof one === 'string' || typeof one === 'number' ? [String(one)] : [])),
  ]
  return (
    <>
      {parts.length > 0 && (
        <span class="hint">
          {' '}
          <Text value={parts.join(', ')} limit={300} />
        </span>
      )}
      {typeof comment === 'string' && comment !== '' && <Said value={comment} limit={500} />}
    </>
  )
}

/** What a held request asks for, as its entry says. */
export function asked(details: AuditRecord['details']): string | undefined {
  const { method, url } = details as Readonly<Record<string, unknown>>
  return typeof method === 'string' && typeof url === 'string' ? `${method} ${url}` : undefined
}

interface SubjectProps {
  readonly action: string
  readonly subject: string
  /** How it is called, when that is known. */
  readonly known: string | undefined
}

function Subject({ action, subject, known }: SubjectProps) {
  const text = <Text value={known ?? subject} limit={300} />
  const place = isAgent(subject) && !action.startsWith('hitl.grant') ? 'agents' : placeOf(action)
  if (place === undefined) return text
  return (
    <a class="linked" href={hrefOf(place, subject)}>
      {text}
    </a>
  )
}

function placeOf(action: string): string | undefined {
  if (action.startsWith('policy.')) return 'policies'
  return action.startsWith('hitl.') && !action.startsWith('hitl.grant') ? 'requests' : undefined
}

const isAgent = (id: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)
