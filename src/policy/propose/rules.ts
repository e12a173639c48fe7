import { valuesOfBoth } from './field-values.ts'
import type { Judged } from './judge.ts'
import { hasRawPath, rawPath } from './shape.ts'
import type { Evidence, Template } from './template.ts'

/** A rule that is proposed, without its place in a policy. */
export interface ProposedRule {
  readonly effect: 'Allow' | 'Hitl'
  /** What it is about, for its name. */
  readonly subject: 'read' | 'write' | 'tool' | 'model' | 'graphql'
  readonly conditions: readonly ProposedCondition[]
  readonly evidence: Evidence
  readonly agents: number
  /** Why it waits for a person. */
  readonly cause: string
}

export interface ProposedCondition {
  readonly field: string
  readonly operator: string
  readonly value: string | readonly string[]
  readonly quantifier?: 'all'
}

/** Patterns of one rule. */
const maxPatterns = 200

/** A template that stands for several agents, methods, paths and values. */
interface Joined {
  readonly effect: 'Allow' | 'Hitl'
  readonly cause: string
  readonly origin: string
  readonly agents: readonly string[]
  readonly methods: readonly string[]
  readonly patterns: readonly string[]
  readonly facts: readonly (readonly [field: string, values: readonly string[] | null])[]
  readonly names: Template['names']
  readonly values: Template['values']
  readonly evidence: readonly Evidence[]
}

/** The rules of some templates: those that differ in one thing alone become one rule. */
export function rulesOf(judged: readonly Judged[]): readonly ProposedRule[] {
  let all = judged.map(joinedOf)
  for (const part of ['agents', 'methods', 'patterns'] as const) all = join(all, part)
  for (const field of ['llm.model', 'mcp.tool', 'mcp.method', rawPath]) all = joinFacts(all, field)
  return all.flatMap(divide).map(ruleOf)
}

function joinedOf({ template, effect, cause }: Judged): Joined {
  const { agentId, method, origin, pattern, names, values, evidence } = template
  const facts = template.facts.map(([field, value]) => [field, value === null ? null : [value]] as const)
  return {
    ...{ effect, cause, origin, facts, names, values },
    ...{ agents: [agentId], methods: [method], patterns: hasRawPath(template) ? [] : [pattern], evidence: [evidence] },
  }
}

const union = (all: readonly (readonly string[])[]): readonly string[] => [...new Set(all.flat())].sort()

function join(all: readonly Joined[], part: 'agents' | 'methods' | 'patterns'): Joined[] {
  const alike = Map.groupBy(all, one => JSON.stringify({ ...one, [part]: null, evidence: null }))
  return [...alike.values()].map(group => {
    const evidence = group.flatMap(one => one.evidence)
    return { ...group[0]!, [part]: union(group.map(one => one[part])), evidence }
  })
}

function joinFacts(all: readonly Joined[], field: string): Joined[] {
  const valuesOf = ({ facts }: Joined) => facts.find(([name]) => name === field)?.[1] ?? []
  const without = (facts: Joined['facts'], values: readonly string[]): Joined['facts'] =>
    facts.map(fact => (fact[0] === field && fact[1] !== null ? [field, values] : fact))
  const alike = Map.groupBy(all, one => JSON.stringify({ ...one, facts: without(one.facts, []), evidence: null }))
  return [...alike.values()].flatMap(group => {
    const values = union(group.map(valuesOf))
    const evidence = group.flatMap(one => one.evidence)
    return group.slice(0, 1).map(one => ({ ...one, facts: without(one.facts, values), evidence }))
  })
}

/** A rule with many patterns becomes several. */
function divide(one: Joined): Joined[] {
  const parts = Math.max(1, Math.ceil(one.patterns.length / maxPatterns))
  return Array.from({ length: parts }, (_, part) => {
    return { ...one, patterns: one.patterns.slice(part * maxPatterns, (part + 1) * maxPatterns) }
  })
}

function ruleOf(one: Joined): ProposedRule {
  const { effect, cause, agents } = one
  return { effect, cause, subject: subjectOf(one), agents: agents.length, ...conditionsAndEvidence(one) }
}

function conditionsAndEvidence({ agents, methods, origin, patterns, facts, names, values, evidence }: Joined) {
  const conditions: ProposedCondition[] = [
    oneOf('agent.id', agents),
    oneOf('input.method', methods),
    { field: 'input.origin', operator: 'eq', value: origin },
    ...(patterns.length === 0 ? [] : [{ field: 'input.path', operator: 'pathMatches', value: patterns }]),
    ...facts.map(([field, values]) => factCondition(field, values)),
    ...names.map(([field, all]) => namesCondition(field, all)),
    ...values.map(([field, texts]) => ({ ...oneOf(field, texts), quantifier: 'all' as const })),
  ]
  return { conditions, evidence: sumOf(evidence) }
}

const oneOf = (field: string, values: readonly string[]): ProposedCondition =>
  values.length === 1 ? { field, operator: 'eq', value: values[0]! } : { field, operator: 'in', value: values }

function factCondition(field: string, values: readonly string[] | null): ProposedCondition {
  if (values === null) return { field, operator: 'notExists', value: 'true' }
  const condition = oneOf(field, values)
  return field.startsWith('input.bodyInfo') || field === rawPath ? condition : { ...condition, quantifier: 'all' }
}

function namesCondition(field: string, names: readonly string[]): ProposedCondition {
  if (field === 'input.queryString') return queryCondition(field, names)
  if (names.length === 0) return { field: field.replace(/@keys$/, '@size'), operator: 'eq', value: '0' }
  return { field, operator: 'in', value: names, quantifier: 'all' }
}

/** A query of these parameters alone. */
function queryCondition(field: string, names: readonly string[]): ProposedCondition {
  if (names.length === 0) return { field, operator: 'eq', value: '' }
  const pair = `(?:${names.map(name => name.replace(/[.$[\]]/g, '\\$&')).join('|')})(?:=[^&;]*)?`
  return { field, operator: 'matches', value: `^${pair}(?:&${pair})*$` }
}

function subjectOf({ facts, methods }: Joined): ProposedRule['subject'] {
  const has = (name: string) => facts.some(([field]) => field.startsWith(name))
  if (has('mcp.')) return 'tool'
  if (has('llm.')) return 'model'
  if (has('graphql.')) return 'graphql'
  return methods.every(method => /^(?:GET|HEAD|OPTIONS)$/.test(method)) ? 'read' : 'write'
}

function sumOf(all: readonly Evidence[]): Evidence {
  return {
    count: all.reduce((sum, { count }) => sum + count, 0),
    days: Math.max(...all.map(({ days }) => days)),
    first: Math.min(...all.map(({ first }) => first)),
    last: Math.max(...all.map(({ last }) => last)),
    approved: all.reduce((sum, { approved }) => sum + approved, 0),
    fields: all.map(({ fields }) => fields).reduce(valuesOfBoth),
  }
}
