/** What a message for people says of an event: short plain texts, without bodies, queries, header values or tokens. */
import { escapeDeceptive } from '../../base/deceptive.ts'
import { redactPath, redactText } from '../../base/redact.ts'
import { secretSearch } from '../../policy/detectors/detectors.ts'
import type { HitlEvent } from '../events.ts'

/** A value may come from an agent: each format writes it as plain text, with `fit`. */
export interface Notice {
  readonly headline: string
  /** Name and value. */
  readonly facts: readonly (readonly [string, string])[]
  /** The page of the console about it; absent without a public URL. */
  readonly link: string | undefined
}

/** Longest value of a message as it is sent, escapes included, UTF-16 units. */
const longest = 200
/** Characters of the digest of a request by which people compare it with the console. */
const digestShown = 12

export function noticeOf({ type, hitlId, data }: HitlEvent, link: string | undefined): Notice {
  if (type === 'pending') {
    return { headline: `Review needed until ${minuteOf(String(data['expiresAt']))}`, facts: factsOf(data), link }
  }
  const facts = factsIn([
    ['By', nameOf(data, 'byName', 'by')],
    ['Cause', data['cause']],
  ])
  return { headline: plainText(`${subjectOf(hitlId, data)}: ${type}`), facts, link }
}

function subjectOf(hitlId: string | null, data: HitlEvent['data']): string {
  if (hitlId !== null) return `Request ${hitlId}`
  if (data['credential'] !== undefined) return `Credential ${data['credential']}`
  const agent = nameOf(data, 'agentName', 'agentId')
  if (data['budget'] === undefined) return `Agent ${agent}`
  return `Budget ${data['budget']} of ${agent || data['holder']}`
}

/** A notice of several requests that came at once. */
export const noticeOfMore = (count: number, link: string | undefined): Notice => ({
  headline: `${count} more requests wait for review`,
  ...{ facts: [], link },
})

function factsOf(data: HitlEvent['data']): Notice['facts'] {
  const { rule, policyName } = data
  return factsIn([
    ['Request', `${data['method']} ${placeOf(String(data['url']))}`],
    ['What', data['title'] ?? data['operation']],
    ['Agent', nameOf(data, 'agentName', 'agentId')],
    ['Owner', data['ownerId']],
    ['Rule', typeof rule === 'string' ? `${rule} (${policyName})` : undefined],
    ['Reason', data['ruleReason'] ?? data['reason']],
    ['Digest', String(data['digest'] ?? '').slice(0, digestShown)],
    ['Id', data['id']],
  ])
}

/** `2026-11-24 12:00 UTC` of ISO 8601. */
const minuteOf = (time: string): string => time.replace(/T(\d\d:\d\d).*/, ' $1 UTC')

/** Secrets in it are marked, and nothing hides or reorders it. */
export const plainText = (text: string): string => escapeDeceptive(withoutSecrets(redactText(text)))

/** What detectors know by its form is marked: its word, or the whole text when it goes over several. */
function withoutSecrets(text: string): string {
  if (secretSearch.find(text) === undefined) return text
  const marked = text.split(/([\s/]+)/).map(word => markOf(word) ?? word)
  return markOf(marked.join('')) ?? marked.join('')
}

function markOf(text: string): string | undefined {
  const found = secretSearch.find(text)
  return found && `[redacted: ${found}]`
}

/** What is there, as plain text. */
export function factsIn(facts: readonly (readonly [string, unknown])[]): Notice['facts'] {
  return facts.flatMap(([name, value]) =>
    typeof value === 'string' && value !== '' ? [[escapeDeceptive(name), plainText(value)] as const] : [],
  )
}

/** A query may hold anything: it is left out. */
function placeOf(url: string): string {
  const parsed = URL.parse(url)
  return parsed === null ? '' : parsed.origin + redactPath(parsed.pathname)
}

function nameOf(data: HitlEvent['data'], name: string, id: string): string | undefined {
  const known = data[name]
  const key = data[id]
  if (typeof key !== 'string') return undefined
  return typeof known === 'string' && known !== '' ? `${known} (${key})` : key
}

/** The text with each character as `write` gives it, cut between two characters after 200. */
export function fit(text: string, write: (char: string) => string = char => char): string {
  let fitted = ''
  for (const char of text) {
    const written = write(char)
    if (fitted.length + written.length > longest - 1) return `${fitted}…`
    fitted += written
  }
  return fitted
}
