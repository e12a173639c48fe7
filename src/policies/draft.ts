/** A rule and a test from one request. */
import { mark } from '../base/redact.ts'
import { type Refusal, refuse, refuseField } from '../base/refusals.ts'
import { writeYaml } from '../config/write-yaml.ts'
import { differenceOf, type PolicyDifference } from '../policy/diff/difference.ts'
import { type CompiledPolicy, compilePolicySync } from '../policy/evaluation/compile.ts'
import { decideMasked, type IsKnown } from '../policy/evaluation/masked.ts'
import { walk } from '../policy/evaluation/walk.ts'
import type { RuleDocument } from '../policy/language/format.ts'
import type { Effect } from '../policy/language/model.ts'
import { type LanguageOptions, parsePolicy } from '../policy/language/parse.ts'
import { factsOf } from '../policy/lint/examined.ts'
import { lintPolicy } from '../policy/lint/lint.ts'
import type { LintWarning } from '../policy/lint/warning.ts'
import { type DraftTerms, draftRule, partsOf } from '../policy/propose/draft.ts'
import type { KeptShape } from '../policy/propose/kept.ts'
import { knownBy } from '../policy/propose/known.ts'
import type { ShapeOutcome } from '../policy/propose/outcome.ts'
import { sampleOf } from '../policy/propose/sample.ts'
import { type Shape, shapeOf } from '../policy/propose/shape.ts'
import { type DescribedRequest, type RequestDescription, requestFromDescription } from '../policy/request/describe.ts'
import type { Facts } from '../policy/request/facts.ts'
import type { ShapeCount } from '../storage/store.ts'
import { compileDocument } from './propose.ts'
import { certain, examplesOf, type SimulatedAgent } from './simulate.ts'

export interface DraftOrder extends Omit<DraftTerms, 'open'> {
  readonly request: RequestDescription['request']
  readonly open: readonly string[]
  /** The rule is checked alone: nothing of the policy of the agent is told but the decision of the request. */
  readonly alone: boolean
}

/** Each part is tried on everything that was recorded. */
const maxParts = 32

/** What opening a part, or closing it again, changes among the requests that were recorded of the agent. */
export interface DraftSwitch {
  readonly part: string
  readonly open: boolean
  /** Requests that the rule matches only with the part open. */
  readonly adds: number
  /** Those of them that a policy or a person denied. */
  readonly denied: number
}

export interface MadeDraft {
  readonly rule: RuleDocument
  readonly yaml: string
  /** Requests that were recorded and that it matches. */
  readonly matches: number
  readonly switches: readonly DraftSwitch[]
  readonly warnings: readonly Omit<LintWarning, 'rule'>[]
  /** What adding it does to the policy of the agent; null when that has none, or the rule is checked alone. */
  readonly difference: PolicyDifference | null
  /** Decision of now, without the fields that are hidden; null when the agent has no policy. */
  readonly decision: Effect | null
  /** The rule that decides so; null: the default, or none. */
  readonly decidedBy: string | null
  /** The request as the test has it; null when it has a secret. */
  readonly request: DraftOrder['request'] | null
  /** A test file with the decision of now; null when the request has a secret, or the agent no policy. */
  readonly test: string | null
  /** Header fields that the test leaves out: they are or may be secrets. */
  readonly redacted: readonly string[]
}

/** An agent with what was recorded of it, without whole requests. */
export type DraftSubject = Omit<SimulatedAgent, 'samples'>

export function makeDraft(order: DraftOrder, subject: DraftSubject, language: LanguageOptions): MadeDraft | Refusal {
  const { agent, before } = subject
  const described = requestFromDescription({ request: order.request, agent }, 0)
  if ('problem' in described) return refuse('invalid_target', described.problem)
  const shape = shapeOf(described)
  if ('unfit' in shape) return refuse('invalid_body', `No rule can be made of the request: ${shape.unfit}.`)
  const parts = partsOf(shape)
  if (parts.length > maxParts)
    return refuse(
      'invalid_body',
      `No rule can be made of the request: it has more than ${maxParts} parts, segments of the path among them.`,
    )
  const wrong = order.open.find(part => !parts.includes(part))
  if (wrong !== undefined) return refuseField('open', `must be of ${parts.join(', ')}`)
  const rule = draftRule(shape, agent.id, { ...order, open: new Set(order.open) })
  const current = before && compileDocument(before, language)
  const changed = withRule((order.alone ? undefined : before) ?? { name: 'draft' }, rule, language)
  if ('refusal' in changed) return changed
  const ownIndex = changed.policy.rules.findIndex(({ name }) => name === rule.name)
  return {
    ...{ rule, yaml: writeYaml({ rules: [rule] }, 'rules', new Map()) },
    ...countsOf(order, shape, parts, subject),
    warnings: warningsOf(changed, `rules[${ownIndex}]`),
    difference: current === undefined || order.alone ? null : differenceOf(current, changed),
    ...testOf(order, described, current),
  }
}

/** The policy with the rule; its name and its conditions may not fit. */
function withRule(document: object, rule: RuleDocument, language: LanguageOptions): CompiledPolicy | Refusal {
  const rules = 'rules' in document && Array.isArray(document.rules) ? document.rules : []
  const parsed = parsePolicy({ ...document, rules: [...rules, rule] }, language)
  if ('policy' in parsed) return compilePolicySync(parsed.policy, language)
  const errors = parsed.problems.map(({ message }) => ({ field: 'name', message }))
  return refuse('invalid_body', undefined, { errors })
}

function warningsOf({ policy }: CompiledPolicy, place: string): MadeDraft['warnings'] {
  const mine = lintPolicy(policy).warnings.filter(({ path }) => path.startsWith(place))
  return mine.map(({ code, path, message }) => ({ code, path, message }))
}

function countsOf(order: DraftOrder, shape: Shape, parts: readonly string[], subject: DraftSubject) {
  const { agent } = subject
  const recorded = recordedOf(subject)
  const matched = (open: ReadonlySet<string>) => matchedBy(draftRule(shape, agent.id, { ...order, open }), recorded)
  const now = new Set(order.open)
  const base = matched(now)
  const switches = parts.map((part): DraftSwitch => {
    const open = now.has(part)
    const other = matched(open ? new Set([...now].filter(one => one !== part)) : new Set([...now, part]))
    const [wide, narrow] = open ? [base, other] : [other, base]
    const more = [...wide].filter(one => !narrow.has(one))
    const denied = more.filter(isDenied)
    return { part, open, adds: sum(more), denied: sum(denied) }
  })
  return { matches: sum([...base]), switches }
}

const sum = (shapes: readonly ShapeCount[]) => shapes.reduce((all, { count }) => all + count, 0)

function isDenied({ outcome: text }: ShapeCount): boolean {
  const { effect, verdict }: ShapeOutcome = JSON.parse(text)
  return effect === 'Deny' || verdict === 'denied'
}

/** A shape with its requests, made once for all the rules that are tried on them. */
export interface RecordedShape {
  readonly count: ShapeCount
  readonly examples: readonly Facts[]
  readonly isKnown: IsKnown
}

/** @param asked fields whose values rules compare: a drafted rule asks for names alone */
export function recordedOf({ agent, shapes }: DraftSubject, asked?: ReadonlySet<string>): readonly RecordedShape[] {
  return shapes.map(count => {
    const kept: KeptShape = JSON.parse(count.shape)
    const fields = Object.fromEntries(Object.entries(count.fields).filter(([field]) => asked?.has(field)))
    const examples = examplesOf(kept, { values: count.values, fields }, agent)
    return { count, examples: examples.map(factsOf), isKnown: knownBy(kept, fields) }
  })
}

/** The shapes whose requests the rule certainly matches. */
export function matchedBy(
  { name, priority, conditions }: RuleDocument,
  recorded: readonly RecordedShape[],
): ReadonlySet<ShapeCount> {
  const rule = { name, priority, conditions, effect: 'Allow' }
  const policy = compileDocument({ name: 'draft', default: 'Deny', rules: [rule] }, {})
  const matched = recorded.filter(
    ({ examples, isKnown }) => certain(examples.map(one => decideMasked(policy, one, isKnown))) === 'Allow',
  )
  return new Set(matched.map(({ count }) => count))
}

/** The test is of the request without the fields that are hidden, as its decision is. */
function testOf(
  { request }: DraftOrder,
  described: DescribedRequest,
  current: CompiledPolicy | undefined,
): Pick<MadeDraft, 'decision' | 'decidedBy' | 'request' | 'test' | 'redacted'> {
  const sample = sampleOf(described)
  const hidden = new Set(sample?.rawHeaders.filter((_, at) => sample.rawHeaders[at + 1] === mark))
  const redacted = Object.keys(request.headers ?? {}).filter(name => hidden.has(name))
  const shown = Object.entries(request.headers ?? {}).filter(([name]) => !hidden.has(name))
  const { headers: _, ...plain } = request
  const tested = { ...plain, ...(shown.length === 0 ? {} : { headers: Object.fromEntries(shown) }) }
  const { agent } = described.head
  // The URL was taken with more fields, and nothing else refuses.
  const again = requestFromDescription({ request: tested, agent }, 0) as DescribedRequest
  const decided = current && walk(current, factsOf(again))
  const decision = decided?.effect ?? null
  const decidedBy = decided?.last?.rule.name ?? null
  const now = { decision, decidedBy, redacted }
  if (sample === undefined) return { ...now, request: null, test: null }
  if (current === undefined) return { ...now, request: tested, test: null }
  const expect = { decision, rule: decidedBy }
  const test = { name: 'made from a request', agent: { id: agent.id }, request: tested, expect }
  const yaml = writeYaml({ policy: current.policy.name, tests: [test] }, 'tests', new Map())
  return { ...now, request: tested, test: yaml }
}
