/** Apart from field-values.ts, which the thread of the storage loads: it needs none of what reads a body. */
import { redactText } from '../../base/redact.ts'
import { isSecretName } from '../../base/secret-names.ts'
import { segmentClasses } from '../../base/segment-class.ts'
import { personalDataSearch, secretSearch } from '../detectors/detectors.ts'
import type { Facts } from '../request/facts.ts'
import { findIn } from '../turns/evaluation.ts'
import { isRecord } from '../values/path.ts'
import type { BodyValue, BodyValues } from './field-values.ts'
import { saysNameOfSecret } from './sample-secrets.ts'
import { readFact, type Shape } from './shape.ts'

const maxFields = 32
/** Fields of one body that are looked at: detectors search their texts in one turn of the event loop. */
const maxLooked = 64
const maxText = 64
const plainName = /^[A-Za-z_]\w{0,63}$/
const plainText = /^[\w.:/-]+$/
/** Texts that are numbers; longer ones are ids. */
const plainNumber = /^-?\d{1,12}(?:\.\d{1,6})?$/

/** Words in names of fields whose values say something of a person, or let somebody in. */
const privateWords = new Set([
  ...['secret', 'answer', 'nonce', 'mfa', 'otp', 'tan', 'challenge', 'salt', 'seed', 'hash', 'digest'],
  ...['phone', 'telephone', 'tel', 'mobile', 'fax', 'birth', 'birthday', 'dob', 'ssn', 'passport', 'surname'],
])
/** Parts of texts that are shorter may be anything. */
const shortestPart = 6
/** How people write words and versions: `eur`, `EUR`, `sendMessage`, `GraphQL`, `sha256`. */
const plainPart = /^\d{0,3}(?:[a-z]+|[A-Z]+|[A-Z]?[a-z]+(?:[A-Z][a-z]+)*[A-Z]{0,3})\d{0,4}$|^\d+$/
/** Digits of the shortest number of a telephone. */
const telephoneDigits = 7

/** The values of the fields of its body that may be kept: texts in which nothing secret is, booleans, and numbers. */
export function bodyValuesOf(found: Facts, { names, facts }: Pick<Shape, 'names' | 'facts'>): BodyValues {
  // Of a message, what its tool gets; the rest are facts.
  const object = names.findLast(([field]) => field.endsWith('.@keys'))?.[0].replace(/\.@keys$/, '')
  const isMessage = facts.some(([field]) => field === 'mcp.method')
  if (object === undefined || (isMessage && object !== 'input.body.params.arguments')) return {}
  const value = readFact(object, found)
  if (!isRecord(value) || saysNameOfSecret(value)) return {}
  const hasModel = facts.some(([field]) => field === 'llm.model')
  const members = Object.entries(value).filter(([name]) => plainName.test(name) && !(hasModel && name === 'model'))
  const kept = members.slice(0, maxLooked).flatMap(([name, one]) => {
    const field = `${object}.${name}`
    // Conditions do not answer for a field whose name another one has in other letter case, or as a list.
    const isFit = !isPrivateName(name) && readFact(field, found) === one
    const kept = isFit ? readValue(one) : undefined
    return kept === undefined ? [] : [[field, kept] as const]
  })
  return Object.fromEntries(kept.slice(0, maxFields))
}

function isPrivateName(name: string): boolean {
  const spaced = name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase()
  return isSecretName(name) || spaced.split(/[_\d]+/).some(word => privateWords.has(word))
}

function readValue(value: unknown): BodyValue | undefined {
  if (!['string', 'number', 'boolean'].includes(typeof value)) return undefined
  const text = String(value)
  if (text.length > maxText) return undefined
  if (findIn(secretSearch, text) !== undefined || findIn(personalDataSearch, text) !== undefined) return undefined
  if (plainNumber.test(text)) return { min: Number(text), max: Number(text) }
  const isPlain = typeof value !== 'number' && plainText.test(text) && redactText(text) === text
  return isPlain && !isRandom(text) && !hasNamedSecret(text) ? { texts: [text] } : undefined
}

/** Whether something comes after the name of a secret: `password:x`, `reset-token/x`. */
function hasNamedSecret(text: string): boolean {
  return text.split(/[:/]/).slice(0, -1).some(isSecretName)
}

/** Ids, numbers of telephones, and keys of a kind that no detector knows: none is one of a few texts that a field may have. */
function isRandom(text: string): boolean {
  if (segmentClasses.some(({ holds }) => holds(text)) || text.replace(/\D/g, '').length >= telephoneDigits) return true
  return text.split(/[_.:/-]+/).some(part => part.length >= shortestPart && !plainPart.test(part))
}
