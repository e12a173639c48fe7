/** The request that is explained, as it is typed. */
import { call } from '../api.ts'
import { bytesOf, textOf } from '../body/bytes.ts'
import { readRequest } from '../request/exact.ts'
import { search } from '../router.ts'
import { mayRead } from '../session.ts'
import type { Agent, ExplainRequest, PolicyDiff } from '../types.ts'

export interface Draft {
  readonly method: string
  readonly url: string
  /** `Name: value`, one a line. */
  readonly headers: string
  readonly body: string
  /** Of a request of the history: the agent that sent it. */
  readonly agent?: Agent
  /** Of a request that was made up: facts of the agent that it rests on. */
  readonly facts?: Readonly<Record<string, unknown>>
}

export const emptyDraft: Draft = { method: 'GET', url: '', headers: '', body: '' }

/** The request that the route names: by the id of a held one, or by method and URL. */
export async function draftOf(): Promise<Draft> {
  const given = search.peek()
  const id = given.get('request')
  if (id === null) return { ...emptyDraft, method: given.get('method') ?? 'GET', url: given.get('url') ?? '' }
  const answer = await readRequest(id)
  if (!answer.ok) return emptyDraft
  const { method, url, headers, body, bodyEncoding, agentId } = answer.data
  const agent = mayRead.peek() ? await call<Agent>('GET', `/agents/${agentId}`) : undefined
  return {
    method,
    url,
    headers: Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n'),
    // Bytes that are no text cannot be typed; the conditions on the body then differ.
    body: bodyEncoding === 'base64' ? typedText(body) : '',
    ...(agent?.ok === true && { agent: agent.data }),
  }
}

function typedText(base64: string): string {
  const { text, invalid } = textOf(bytesOf(base64))
  return invalid === 0 ? text : ''
}

/** A request that two policies decide differently. Text of JSON is sent as such. */
export function draftOfExample({ method, url, headers, body, agent }: PolicyDiff['examples'][number]): Draft {
  const isTyped = Object.keys(headers).some(name => name.toLowerCase() === 'content-type')
  const fields = /^[[{]/.test(body) && !isTyped ? { ...headers, 'Content-Type': 'application/json' } : headers
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`)
  return { method, url, headers: lines.join('\n'), body, facts: agent }
}

export function requestOf({ method, url, headers, body, agent, facts }: Draft): ExplainRequest {
  return {
    request: {
      method: method.trim().toUpperCase() || 'GET',
      url: url.trim(),
      headers: headersOf(headers),
      ...(body === '' ? {} : { body }),
    },
    ...(agent === undefined ? facts && { agent: facts } : { agent: factsOf(agent) }),
  }
}

function factsOf({ id, name, ownerId, status, policyName, trustScore, tags, createdAt }: Agent) {
  return { id, name, ownerId, status, policyName, trustScore, tags, createdAt: Date.parse(createdAt) }
}

function headersOf(text: string): Readonly<Record<string, readonly string[]>> {
  const fields = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':')
    if (colon <= 0) continue
    const name = line.slice(0, colon).trim()
    const value = line.slice(colon + 1).trim()
    const known = fields.get(name)
    if (known === undefined) fields.set(name, [value])
    else known.push(value)
  }
  return Object.fromEntries(fields)
}
