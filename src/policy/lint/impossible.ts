import type { Field } from '../language/fields/fields.ts'
import type { Condition } from '../language/model.ts'
import type { Operator } from '../language/operators/operators.ts'
import { readWords } from '../language/operators/values.ts'
import { areApart, rangeOf } from './ranges.ts'

/** What no request can have in a field, and what to write instead; undefined when the value is possible. */
export function impossibleValue(condition: Condition, field: Field, operator: Operator): string | undefined {
  if (operator.form.suits === 'ordering' || field.type === 'number') return impossibleNumber(condition, field, operator)
  const kind = field.text.endsWith('.@type') ? '.@type' : field.text
  const rule = shapes[kind]
  if (rule === undefined || condition.ignoreCase) return undefined
  const word = wordsOf(condition, operator)?.find(one => !rule.fits(one, operator.form.name))
  return word === undefined ? undefined : `no request has ${JSON.stringify(word)} in ${field.text}: ${rule.must}`
}

interface ValueShape {
  /** Whether some value equals, or begins with, the word. */
  readonly fits: (word: string, operator: string) => boolean
  /** What to write, behind a colon. */
  readonly must: string
}

const isPath = (word: string) => word.startsWith('/')
const begins = (word: string, ...wholes: readonly string[]) =>
  wholes.some(whole => word.startsWith(whole) || whole.startsWith(word))
const isUrl = (word: string, operator: string) =>
  operator === 'startsWith' ? begins(word, 'http://', 'https://') : /^https?:\/\//.test(word)
const equals = (pattern: RegExp) => (word: string, operator: string) => operator === 'startsWith' || pattern.test(word)

const path = { fits: isPath, must: 'a path begins with /' }
const url = { fits: isUrl, must: 'it begins with http:// or https://' }
const address = { fits: (word: string) => !word.includes('/'), must: 'use ipIn for a range' }
const host = {
  fits: (word: string) => word.startsWith('[') || !/[/:]/.test(word),
  must: 'a host has no scheme, port or path',
}

const shapes: Readonly<Record<string, ValueShape>> = {
  'input.path': path,
  'input.rawPath': path,
  'input.url': url,
  'input.origin': url,
  'input.host': host,
  'input.scheme': { fits: (word, operator) => equals(/^https?$/i)(word, operator), must: 'it is http or https' },
  'input.queryString': { fits: word => !word.startsWith('?'), must: 'it begins behind the question mark' },
  'input.contentType': { fits: word => !word.includes(';'), must: 'it is the media type without parameters' },
  'input.clientIp': address,
  'input.destinationIp': address,
  'agent.status': { fits: equals(/^Active$/), must: 'only requests of Active agents are decided' },
  'agent.id': { fits: equals(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/), must: 'it is a UUID in lower case' },
  'time.date': { fits: equals(/^\d{4}-\d\d-\d\d$/), must: 'it is written as 2026-01-05' },
  'time.clock': { fits: equals(/^\d\d:\d\d$/), must: 'it is written as 09:00' },
  '.@type': {
    fits: equals(/^(?:string|number|boolean|null|array|object)$/),
    must: 'it is string, number, boolean, null, array or object',
  },
}

/** The texts that a value equals or begins with; undefined for other operators. */
function wordsOf({ value }: Condition, { form: { name } }: Operator): readonly string[] | undefined {
  if (name === 'eq' || name === 'startsWith') return [value]
  if (name === 'in' || name === 'hasAll') return readWords(value)
  // A pattern that begins with a word.
  return name === 'like' && /^\w/.test(value) ? [value.replace(/[*?\\].*$/s, '')] : undefined
}

const bounds: Readonly<Record<string, readonly [low: number, high: number]>> = {
  'input.port': [1, 65_535],
  'input.bodyInfo.size': [0, Number.POSITIVE_INFINITY],
  'mcp.batchSize': [1, Number.POSITIVE_INFINITY],
  'llm.messages': [0, Number.POSITIVE_INFINITY],
  'llm.promptBytes': [0, Number.POSITIVE_INFINITY],
  'agent.trustScore': [0, 1],
  'agent.ageHours': [0, Number.POSITIVE_INFINITY],
  'agent.requestsLastMinute': [0, Number.POSITIVE_INFINITY],
  'agent.deniedLast10m': [0, Number.POSITIVE_INFINITY],
  'agent.hitlLast24h': [0, Number.POSITIVE_INFINITY],
  'agent.toolChangesLast24h': [0, Number.POSITIVE_INFINITY],
  'agent.bytesToday': [0, Number.POSITIVE_INFINITY],
  'agent.spendToday': [0, Number.POSITIVE_INFINITY],
  'agent.spendThisMonth': [0, Number.POSITIVE_INFINITY],
  'agent.tokensToday': [0, Number.POSITIVE_INFINITY],
  'llm.costAtMost': [0, Number.POSITIVE_INFINITY],
  'time.hour': [0, 23],
  'risk.score': [0, 1],
  '.@size': [0, Number.POSITIVE_INFINITY],
}

function impossibleNumber(condition: Condition, field: Field, operator: Operator): string | undefined {
  const bound = bounds[field.text.endsWith('.@size') ? '.@size' : field.text]
  const range = bound && rangeOf(condition, operator)
  if (bound === undefined || range === undefined) return undefined
  const [low, high] = bound
  const possible = [
    { number: low, shift: 0 },
    { number: high, shift: 0 },
  ] as const
  if (!areApart(range, possible)) return undefined
  const max = high === Number.POSITIVE_INFINITY ? `at least ${low}` : `from ${low} to ${high}`
  return `${field.text} is ${max}`
}
