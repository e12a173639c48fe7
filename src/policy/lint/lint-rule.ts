import { readingsOf } from '../../base/readings.ts'
import { fieldOf, operatorOf, type Scope } from '../language/condition.ts'
import type { Field } from '../language/fields/fields.ts'
import type { Condition, Node, Rule } from '../language/model.ts'
import { isNegation, type Operator } from '../language/operators/operators.ts'
import { readWords } from '../language/operators/values.ts'
import { excludes } from './implies.ts'
import { type ConditionLeaf, type LintCode, type LintWarning, leavesOf } from './warning.ts'

export function conditionWarnings(rule: Rule, path: string, scope: Scope): LintWarning[] {
  const leaves = leavesOf(rule, path)
  const found = leaves.flatMap(leaf => leafWarnings(leaf, rule))
  found.push(
    ...originWarnings(rule, path, leaves),
    ...mcpHeaderWarnings(rule, path, leaves),
    ...chatWarnings(rule, path, leaves),
  )
  const contradiction = contradictionIn(rule.conditions, scope)
  if (contradiction === undefined) return found
  const message = `never matches: ${contradiction}`
  return [{ code: 'W_CONTRADICTION', path, rule: rule.name, message }, ...found]
}

/** An Allow rule that names hosts usually means https on the usual port. */
function originWarnings(rule: Rule, path: string, leaves: readonly ConditionLeaf[]): LintWarning[] {
  const fields = new Set(leaves.map(({ condition }) => condition.field))
  if (rule.effect !== 'Allow' || !fields.has('input.host')) return []
  if (fields.has('input.scheme') || fields.has('input.port') || fields.has('input.origin')) return []
  const message = 'also allows plain http and any port: use input.origin, or add input.scheme or input.port'
  return [{ code: 'W_ANY_ORIGIN', path, rule: rule.name, message }]
}

/** Agents write the header fields of MCP as they like; only some are compared with the body. */
function mcpHeaderWarnings(rule: Rule, path: string, leaves: readonly ConditionLeaf[]): LintWarning[] {
  const fields = leaves.map(({ condition }) => condition.field)
  const header = fields.find(field => /^input\.headers\.mcp-/i.test(field))
  if (rule.effect !== 'Allow' || header === undefined || fields.some(field => field.startsWith('mcp.'))) return []
  const message = `allows what the agent claims in ${header}: use mcp.method, mcp.tool or mcp.arguments`
  return [{ code: 'W_MCP_HEADER', path, rule: rule.name, message }]
}

/** Who approves in a chat sees no more of the body than its message shows. */
function chatWarnings(rule: Rule, path: string, leaves: readonly ConditionLeaf[]): LintWarning[] {
  if (!rule.chatApproval) return []
  const read = leaves.map(({ condition }) => fieldOf(condition))
  const unseen = read.find(({ kind, text }) => kind.phase === 'body' && !rule.chatFields.includes(text))
  if (unseen === undefined) return []
  const message = `is approved in a chat that does not show ${unseen.text}: add it to chatFields`
  return [{ code: 'W_CHAT_BLIND', path, rule: rule.name, message }]
}

const literalOperators = ['eq', 'in', 'startsWith', 'endsWith', 'contains', 'pathMatches']

/** Values that a condition compares a path with, or parts of it. */
function pathWords({ field, value }: Condition, { form }: Operator): readonly string[] {
  if (field !== 'input.path' || !literalOperators.includes(form.name)) return []
  return form.name === 'in' || form.name === 'pathMatches' ? readWords(value) : [value]
}

/**
 * A sign that stands in paths as it is (RFC 3986 section 3.3), and whose escape the rule does not name: many servers take one for
 * the other, and no reading of a path does.
 */
function oneSpelling(words: readonly string[], rule: Rule): string | undefined {
  const leaves = leavesOf(rule, '')
  const names = (code: string) => leaves.some(({ condition }) => condition.value.toLowerCase().includes(code))
  for (const word of words) {
    const [sign] = /[:@$]/.exec(word.replace(/\{[^{}]*\}/g, '')) ?? []
    if (sign === undefined) continue
    const [high, low] = sign.charCodeAt(0).toString(16)
    if (!names(`%${high}${low}`) && !names(`%${high}[`)) return sign
  }
  return undefined
}

/** Two conditions that exclude each other, in words. */
function contradictionIn(nodes: readonly Node[], scope: Scope): string | undefined {
  const together = nodes.flatMap(node => ('all' in node ? node.all : [node]))
  for (const [index, left] of together.entries()) {
    const right = together.slice(index + 1).find(other => excludes(left, other, scope))
    if (right !== undefined) return `${nameOf(left)} and ${nameOf(right)} exclude each other`
  }
  return undefined
}

function nameOf(node: Node): string {
  return 'field' in node ? `${node.field} ${node.operator} ${JSON.stringify(node.value)}` : 'a group'
}

function leafWarnings(leaf: ConditionLeaf, rule: Rule): LintWarning[] {
  const warn = (code: LintCode, message: string): LintWarning => ({ code, path: leaf.path, rule: rule.name, message })
  const found: LintWarning[] = []
  const operator = operatorOf(leaf.condition)
  const field = fieldOf(leaf.condition)
  const negation = isNegation(operator, leaf.condition.value) !== leaf.inverted
  if (rule.effect === 'Allow' && negation && mayBeMissing(leaf, field)) {
    found.push(warn('W_NEGATED_ALLOW', `also matches when ${field.text} is missing: add ${field.text} exists`))
  }
  const asksAll = leaf.condition.quantifier === 'all'
  // Without a quantifier all messages of a batch must agree.
  const ofBatch = field.kind.ofBatch === true && asksAll
  const several = field.several || ofBatch || ((field.repeats || mayBeList(leaf, field)) && mayDiffer(operator))
  if (rule.effect === 'Allow' && several && asksAll === negation) {
    const message = negation ? 'matches as soon as one value differs' : 'matches as soon as one value does'
    found.push(warn('W_ANY_ALLOW', `${message}: use quantifier ${negation ? 'any' : 'all'}`))
  }
  const words = pathWords(leaf.condition, operator)
  const ambiguous = words.find(word => readingsOf(word) !== undefined)
  if (ambiguous !== undefined) {
    const text = `only some readings of a path can have ${JSON.stringify(ambiguous)}: use input.rawPath for the spelling`
    found.push(warn('W_ONE_READING', text))
  }
  const sign = rule.effect === 'Allow' || negation ? undefined : oneSpelling(words, rule)
  if (sign !== undefined) {
    found.push(
      warn('W_ONE_SPELLING', `a path with ${encodeURIComponent(sign)} in place of ${sign} is another one: name both`),
    )
  }
  const better = operator.form.name === 'matches' ? literalOperator(leaf.condition.value) : undefined
  if (better !== undefined) found.push(warn('W_REGEX_LITERAL', `the pattern is plain text: ${better} is faster`))
  return found
}

/** Whether one value may satisfy the operator and the next one not. A text that contains one word may contain another. */
function mayDiffer({ form }: Operator): boolean {
  return form.asks === 'element' && form.name !== 'contains'
}

/** Whether a field of a JSON body may hold a list in place of one value. */
function mayBeList({ beside }: ConditionLeaf, { kind, type, text }: Field): boolean {
  if (kind.phase !== 'body' || type !== 'json') return false
  return !beside.some(node => 'field' in node && node.field === text && excludesLists(node))
}

function excludesLists({ operator, value }: Condition): boolean {
  return operator === 'typeIs' && !readWords(value).includes('array')
}

const alwaysThere =
  /^(?:input\.port|input\.clientIp|input\.destination|agent\.(?:id|name|ownerId|status|trustScore|ageHours|hostSeen|.*(?:Last|Today|ThisMonth))|budget\.|time\.|risk\.)/

function mayBeMissing({ condition, beside }: ConditionLeaf, field: Field): boolean {
  if (field.plain !== undefined || alwaysThere.test(field.text)) return false
  if (/^(?:notExists|exists|isEmpty)$/.test(condition.operator)) return false
  return !beside.some(node => 'field' in node && node.field === condition.field && requiresPresence(node))
}

function requiresPresence(condition: Condition): boolean {
  const operator = operatorOf(condition)
  return !isNegation(operator, condition.value) && operator.form.name !== 'isEmpty'
}

/** The operator that says the same as a pattern without any special character. */
function literalOperator(pattern: string): string | undefined {
  const match = /^(\^?)((?:[^\\.*+?^${}()|[\]]|\\[^\w\s])+)(\$?)$/.exec(pattern)
  if (match === null) return undefined
  const [, start, , end] = match
  if (start !== '' && end !== '') return 'eq'
  if (start !== '') return 'startsWith'
  return end === '' ? 'contains' : 'endsWith'
}
