/** Names of the policy language that complete while a policy is typed. A test compares them with the language. */
import { spotAt } from './places.ts'

const members: Readonly<Record<'policy' | 'rule' | 'condition', readonly string[]>> = {
  policy: ['name', 'description', 'owner', 'default', 'timezone', 'onUnreadable', 'shadowOf', 'rules'],
  rule: [
    ...['name', 'effect', 'conditions', 'priority', 'reason', 'title', 'mode', 'approvals', 'waitSeconds'],
    ...['whenUndecided', 'chatApproval', 'chatFields', 'onUnreadable', 'riskExempt', 'budget', 'credential', 'silence'],
  ],
  condition: ['field', 'operator', 'value', 'quantifier', 'ignoreCase', 'all', 'any', 'not'],
}

const fields = [
  ...['input.method', 'input.url', 'input.origin', 'input.scheme', 'input.host', 'input.port', 'input.path'],
  ...['input.rawPath', 'input.pathSegments', 'input.query', 'input.queryString', 'input.headers', 'input.contentType'],
  ...[
    'input.bodyInfo.size',
    'input.bodyInfo.kind',
    'input.body',
    'input.bodyText',
    'input.destinationIp',
    'input.destinationClass',
    'input.clientIp',
  ],
  ...['mcp.method', 'mcp.tool', 'mcp.arguments', 'mcp.resource', 'mcp.prompt', 'mcp.batchSize'],
  ...['llm.provider', 'llm.model', 'llm.stream', 'llm.maxTokens', 'llm.tools', 'llm.messages', 'llm.roles'],
  ...['llm.costAtMost', 'agent.spendToday', 'agent.spendThisMonth', 'agent.tokensToday', 'budget.used'],
  ...[
    'budget.remaining',
    'llm.promptBytes',
    'graphql.operation',
    'graphql.name',
    'graphql.fields',
    'agent.id',
    'agent.name',
  ],
  ...['agent.ownerId', 'agent.status', 'agent.policyName', 'agent.ageHours', 'agent.tags', 'agent.claims'],
  ...['agent.trustScore', 'agent.requestsLastMinute', 'agent.deniedLast10m', 'agent.hitlLast24h'],
  ...['agent.toolChangesLast24h', 'agent.bytesToday', 'agent.hostSeen', 'time.now', 'time.date', 'time.clock'],
  ...['time.hour', 'time.dayOfWeek', 'risk.score'],
]

const operators = [
  ...['eq', 'ne', 'in', 'notIn', 'hasAll', 'gt', 'gte', 'lt', 'lte', 'between', 'startsWith', 'notStartsWith'],
  ...['endsWith', 'notEndsWith', 'contains', 'notContains', 'like', 'notLike', 'pathMatches', 'notPathMatches'],
  ...['hostMatches', 'notHostMatches', 'matches', 'notMatches', 'ipIn', 'notIpIn', 'exists', 'notExists', 'isEmpty'],
  ...['typeIs', 'detects'],
]

const effects = ['Allow', 'Deny', 'Hitl']

/** What a member may be. */
const values: Readonly<Record<string, readonly string[]>> = {
  effect: effects,
  default: effects,
  field: fields,
  operator: operators,
  mode: ['enforce', 'shadow'],
  onUnreadable: ['failSafe', 'match', 'noMatch'],
  whenUndecided: ['accepted', 'refused'],
  quantifier: ['any', 'all'],
}

export const vocabulary = { members, fields, operators }

export interface Completion {
  readonly words: readonly string[]
  /** What a word replaces. */
  readonly from: number
  readonly to: number
}

/** Words that are offered at once. */
const most = 12

/** @param isAsked whether the person asked for names; else they are offered when a word was begun */
export function completionsAt(text: string, at: number, isAsked: boolean): Completion {
  const { kind, member, within, word, from } = spotAt(text, at)
  const known = kind === 'value' ? (Object.hasOwn(values, member) ? (values[member] ?? []) : []) : membersOf(within)
  const wanted = word.toLowerCase()
  const fitting = known.filter(name => name.toLowerCase().includes(wanted) && name !== word)
  const first = fitting.filter(name => name.toLowerCase().startsWith(wanted))
  const words = [...new Set([...first, ...fitting])].slice(0, most)
  const isQuoted = text[from - 1] === '"'
  const isOffered = isAsked || (isQuoted && word !== '')
  return { words: isOffered ? words.map(name => (isQuoted ? name : `"${name}"`)) : [], from, to: at }
}

function membersOf(within: string): readonly string[] {
  if (within === '') return members.policy
  if (within === 'rules') return members.rule
  return ['conditions', 'all', 'any', 'not'].includes(within) ? members.condition : []
}
