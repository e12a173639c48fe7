import { segmentClass } from '../../base/segment-class.ts'
import type { Condition, Node, Rule } from '../language/model.ts'
import { findOperator } from '../language/operators/operators.ts'
import { classNameOf } from '../language/operators/patterns.ts'
import { readList, readWords } from '../language/operators/values.ts'
import { type DescribedRequest, requestFromDescription } from '../request/describe.ts'
import { isPlaced, leaveOut, place, placeName, type RequestDraft } from './draft.ts'

/**
 * A request made from conditions so that all of them hold, except for patterns, the clock and the risk score, which cannot
 * be made up. The caller checks the conditions; undefined when not even a draft is possible.
 */
export function witnessOf(nodes: readonly Node[]): DescribedRequest | undefined {
  const draft = draftOf(nodes)
  return draft && requestOf(draft)
}

/** Any address of the class `public`: those for documentation are not. */
const publicAddress = '93.184.216.34'

/** The same before it is a request. */
export function draftOf(nodes: readonly Node[]): RequestDraft | undefined {
  const draft: RequestDraft = {
    ...{ method: '', scheme: 'https', host: 'witness.example', port: '', path: '/' },
    ...{ query: [], headers: {}, agent: {}, body: undefined, destinationIp: publicAddress },
  }
  return nodes.every(node => draw(draft, node)) ? draft : undefined
}

/** The request of a draft. @param without a field of the body that the request does not have */
export function requestOf(draft: RequestDraft, without?: string): DescribedRequest | undefined {
  const query = new URLSearchParams(draft.query).toString()
  const url = `${draft.scheme}://${draft.host}${draft.port}${draft.path}${query === '' ? '' : `?${query}`}`
  const { headers, destinationIp } = draft
  const body = without === undefined ? draft.body : leaveOut(draft.body, without)
  const method = draft.method || (draft.body === undefined ? 'GET' : 'POST')
  const request = { method, url, headers, body, ...(destinationIp === undefined ? {} : { destinationIp }) }
  const made = requestFromDescription({ request, agent: draft.agent }, 0)
  return 'problem' in made ? undefined : made
}

/** Makes a node hold; false when that is not possible. Most negations hold of what a draft has: they are left to luck. */
function draw(draft: RequestDraft, node: Node): boolean {
  if ('all' in node) return node.all.every(inner => draw(draft, inner))
  if ('any' in node) return draw(draft, node.any[0]!)
  if ('not' in node) return true
  if (negated.test(node.operator)) return node.field !== 'input.method' || drawOtherMethod(draft, node)
  if (/^(?:exists|typeIs)$/.test(node.operator) && isPlaced(draft, node.field)) return true
  const value = sampleOf(node)
  // The names that the draft has already may do: the caller checks.
  if (node.field.endsWith('.@keys')) return value !== undefined && placeName(draft, node.field, String(value))
  if (value === undefined) return node.operator === 'isEmpty' || node.value.toLowerCase() === 'false'
  return place(draft, node.field, value)
}

const negated = /^(?:ne|not.*)$/

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']

function drawOtherMethod(draft: RequestDraft, { operator, value }: Condition): boolean {
  const refused = operator === 'ne' ? [value] : operator === 'notIn' ? readWords(value) : []
  const others = methods.filter(method => !refused.some(word => word.toUpperCase() === method))
  if (!others.includes(draft.method)) draft.method = others.find(method => method !== 'GET') ?? ''
  return true
}

/** Gives the draft what a rule demands of others: a value of its `notIn`. False when the rule demands nothing. */
export function passGuard(draft: RequestDraft, { conditions }: Rule): boolean {
  return conditions.some(node => drawAgainst(draft, node))
}

/** Makes a node fail; false when that is not possible. */
function drawAgainst(draft: RequestDraft, node: Node): boolean {
  if ('not' in node) return draw(draft, node.not)
  if ('any' in node) return node.any.every(inner => drawAgainst(draft, inner))
  if ('all' in node) return node.all.some(inner => drawAgainst(draft, inner))
  const operator = negated.test(node.operator) ? findOperator(node.operator) : undefined
  return operator !== undefined && draw(draft, { ...node, operator: operator.form.name })
}

/** A value for which the condition holds. */
function sampleOf({ field, operator, value, valueType }: Condition): unknown {
  switch (operator) {
    case 'eq':
      return valueType === undefined ? value : JSON.parse(value)
    case 'in':
    case 'hasAll':
      return firstValue(value)
    case 'between':
      return field === 'time.clock' ? undefined : Number(firstWord(value))
    case 'gt':
      return Number(value) + 1
    case 'lt':
      return Number(value) - 1
    case 'gte':
    case 'lte':
      return Number(value)
    case 'startsWith':
    case 'endsWith':
    case 'contains':
      return value
    case 'pathMatches':
      return firstWord(value)?.split('/').map(sampleSegment).join('/')
    case 'hostMatches':
      return firstWord(value)?.replace(/^\*\.|^\./, 'x.')
    case 'ipIn':
      return firstWord(value)?.split('/')[0]
    case 'exists':
      return value.toLowerCase() === 'true' ? 'x' : undefined
    case 'typeIs':
      return typeSamples[firstWord(value)?.toLowerCase() ?? '']
    default:
      return undefined
  }
}

function sampleSegment(segment: string): string {
  const sample = segmentClass(classNameOf(segment) ?? '')?.sample
  return sample ?? segment.replace(/\*\*|\*|\{[^}]*\}/g, 'x')
}

const typeSamples: Readonly<Record<string, unknown>> = { string: 'x', number: 1, boolean: true, array: [], object: {} }

function firstValue(value: string): unknown {
  const [first] = readList(value)
  return first?.type === undefined ? first?.text : JSON.parse(first.text)
}

function firstWord(value: string): string | undefined {
  return readWords(value)[0]
}
