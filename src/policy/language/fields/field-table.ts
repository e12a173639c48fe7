import type { Activity } from '../../../base/activity.ts'
import { canonicalAddress } from '../../../base/address.ts'
import { normaliseHost } from '../../../base/host.ts'
import { parseTarget } from '../../../base/target.ts'
import type { DetectorSearch } from '../../detectors/detectors.ts'
import type { Facts } from '../../request/facts.ts'
import type { BudgetFacts, SpendFacts } from '../../request/input.ts'
import type { McpHeads } from '../../request/mcp-heads.ts'
import { missing, type Truth, Unknown, unknown, unreadable } from '../../values/truth.ts'
import * as graphql from './graphql.ts'
import * as llm from './llm.ts'
import * as alias from './mcp.ts'
import { days, type WallTime, type Zone } from './zone.ts'

export interface FieldKind {
  /** head: known before the body; body: needs it; risk: bounded before the body, exact after. */
  readonly phase: 'head' | 'body' | 'risk'
  readonly type: 'string' | 'number' | 'boolean' | 'address' | 'json'
  /** What may follow the base: nothing, `[i]`, one name, or any path. */
  readonly below: 'none' | 'list' | 'name' | 'any'
  /** text: the value came as text, so a typed number is compared with the number it spells. */
  readonly channel: 'text' | 'json'
  /** Brings policy values to the form that requests carry. Undefined: no such value. */
  readonly normalise?: (text: string) => string | undefined
  /** Every value there can be. */
  readonly values?: readonly string[]
  /** Whether rules that read it need the destination address first. */
  readonly destination?: true
  /** Whether rules that read it need to know what is spent of budgets first. */
  readonly spend?: true
  /** Taken from the path, which servers may read in more than one way: conditions are asked of every reading. */
  readonly ofPath?: true
  readonly header?: true
  readonly several?: true
  /** An agent may send it more than once; then it is a list. */
  readonly repeats?: true
  /** It has a value in each message of a batch. */
  readonly ofBatch?: true
  readonly plain?: (facts: Facts) => string
  /** Whether a search finds something in the value, without decoding it. */
  readonly detects?: (facts: Facts, search: DetectorSearch) => Truth
  readonly read: (facts: Facts, zone: Zone) => unknown
  /** Reads the first name of a path below the field, where the value alone does not show how servers read its names. */
  readonly member?: (facts: Facts, key: string) => unknown
  /** Reads the names of the value itself, where the value alone does not show which ones servers read. */
  readonly names?: (facts: Facts) => unknown
  /** Names come from the gateway or the identity provider: letter case counts. */
  readonly exactNames?: true
}

const upper = (text: string) => text.toUpperCase()
const lower = (text: string) => text.toLowerCase()
/** `HTTPS://API.example.com:443` is `https://api.example.com`; a URL with a path is not an origin. */
const origin = (text: string) => {
  const target = parseTarget(text)
  return typeof target === 'string' || target.requestTarget !== '/' ? undefined : target.origin.key
}
const host = (text: string) => normaliseHost(text.toLowerCase())

function headValue(type: FieldKind['type'], read: FieldKind['read'], more: Partial<FieldKind> = {}): FieldKind {
  return { phase: 'head', type, below: 'none', channel: 'json', read, ...more }
}

function headText(read: FieldKind['read'], more: Partial<FieldKind> = {}): FieldKind {
  return headValue('string', read, { channel: 'text', ...more })
}

/** A string of the head that is always there. */
function plainText(plain: (facts: Facts) => string, more: Partial<FieldKind> = {}): FieldKind {
  return headText(plain, { plain, ...more })
}

function readBody(facts: Facts): unknown {
  return facts.body === undefined ? unknown : facts.body.value
}

function bodyMember({ body }: Facts, key: string): unknown {
  return body === undefined ? unknown : body.member(key)
}

function bodyNames({ body }: Facts): unknown {
  return body === undefined ? unknown : body.names
}

function time(key: keyof WallTime, more: Partial<FieldKind> = {}): FieldKind {
  return headText((facts, zone) => zone.at(facts.request.now)[key], more)
}

/** A name for something in JSON bodies of one protocol; other readable bodies do not have it. */
function aliasValue(
  type: FieldKind['type'],
  take: (body: unknown) => unknown,
  more: Partial<FieldKind> = {},
): FieldKind {
  const read = (facts: Facts) => {
    if (facts.body?.kind === 'form') return missing
    const body = readBody(facts)
    return typeof body === 'symbol' ? body : take(body)
  }
  return headValue(type, read, { phase: 'body', ...more })
}

/** A counter of the agent; unreadable when the caller of the engine keeps none. */
function counter(key: Exclude<keyof Activity, 'hostSeen'>): FieldKind {
  return headValue('number', facts => facts.activity?.[key] ?? unreadable)
}

/** What the agent has spent; unreadable without a budget that counts it. */
function spent(key: Exclude<keyof SpendFacts, 'budgets'>): FieldKind {
  return headValue('number', facts => facts.spend?.[key] ?? unreadable, { spend: true })
}

/** Of one budget, by its name; unreadable when there is none with this name and a limit. */
function ofBudget(key: keyof BudgetFacts): FieldKind {
  return headValue('number', () => missing, {
    ...{ below: 'name', spend: true, exactNames: true },
    member: (facts, name) => facts.spend?.budgets.get(name)?.[key] ?? unreadable,
  })
}

function agentText(key: 'id' | 'name' | 'ownerId' | 'status' | 'policyName'): FieldKind {
  return headText(facts => facts.agent[key] ?? missing)
}

const millisecondsPerHour = 3_600_000
const bodyKinds = ['none', 'json', 'form', 'multipart', 'text', 'binary', 'invalid', 'truncated', 'encoded']
const classes = ['public', 'private', 'loopback', 'linkLocal', 'metadata', 'reserved']
const destinationClass = (text: string) => classes.find(name => lower(name) === lower(text)) ?? text

/** Clients over a unix socket have a word in place of an address. */
const address = (text: string) => canonicalAddress(text) ?? text.toLowerCase()

const ofBatch = { ofBatch: true } as const

/** A field of the body that also reads the path or the query. */
function ofWhole(type: FieldKind['type'], take: (facts: Facts) => unknown, more: Partial<FieldKind> = {}): FieldKind {
  const read = (facts: Facts) => (facts.body === undefined ? unknown : take(facts))
  return headValue(type, read, { phase: 'body', ...more })
}

/** A field of MCP: the head of the request may claim it before the body shows it. */
function mcp(
  type: FieldKind['type'],
  claimed: (heads: McpHeads) => unknown,
  take: (body: unknown) => unknown,
  more: Partial<FieldKind> = {},
): FieldKind {
  const kind = aliasValue(type, take, more)
  const read = (facts: Facts, zone: Zone) =>
    facts.mcp !== undefined && facts.body === undefined ? claimed(facts.mcp) : kind.read(facts, zone)
  return { ...kind, read }
}

/** Addresses are known after name resolution; a rule that reads one without it cannot be evaluated. */
function destination(key: 'ip' | 'class', more: Partial<FieldKind>): FieldKind {
  return headText(facts => facts.destination?.[key] ?? unreadable, { destination: true, ...more })
}

export const fieldKinds: ReadonlyMap<string, FieldKind> = new Map([
  ['input.method', plainText(facts => facts.request.method, { normalise: upper })],
  ['input.url', plainText(facts => facts.url, { ofPath: true })],
  ['input.origin', plainText(facts => facts.request.origin, { normalise: origin })],
  ['input.scheme', plainText(facts => facts.request.scheme, { normalise: lower })],
  ['input.host', plainText(facts => facts.request.host, { normalise: host })],
  ['input.port', headValue('number', facts => facts.request.port)],
  ['input.path', plainText(facts => facts.path, { ofPath: true })],
  // As received: for rules on the spelling itself.
  ['input.rawPath', plainText(facts => facts.request.rawPath)],
  ['input.pathSegments', headText(facts => facts.segments, { below: 'list', ofPath: true, repeats: true })],
  ['input.queryString', plainText(facts => facts.request.queryString)],
  [
    'input.query',
    headText(() => missing, { below: 'name', repeats: true, member: (facts, name) => facts.query.valueOf(name) }),
  ],
  ['input.headers', headText(() => missing, { below: 'name', header: true, repeats: true })],
  ['input.contentType', headText(facts => facts.mediaType, { normalise: lower, repeats: true })],
  ['input.bodyInfo.size', headValue('number', facts => facts.bodySize, { phase: 'body' })],
  [
    'input.bodyInfo.kind',
    headValue('string', facts => facts.body?.kind ?? unknown, { phase: 'body', normalise: lower, values: bodyKinds }),
  ],
  ['input.body', headValue('json', readBody, { phase: 'body', below: 'any', member: bodyMember, names: bodyNames })],
  [
    'input.bodyText',
    headValue('string', facts => facts.body?.text ?? unknown, {
      phase: 'body',
      detects: (facts, search) => facts.body?.detects(search) ?? Unknown,
    }),
  ],
  ['input.destinationIp', destination('ip', { type: 'address', normalise: address })],
  ['input.destinationClass', destination('class', { normalise: destinationClass, values: classes })],
  ['input.clientIp', headText(facts => facts.request.clientIp ?? unreadable, { type: 'address', normalise: address })],
  ['mcp.method', mcp('string', alias.claimedMethod, alias.mcpMethod, ofBatch)],
  ['mcp.tool', mcp('string', alias.claimedTool, alias.mcpTool, ofBatch)],
  ['mcp.arguments', mcp('json', alias.claimedArguments, alias.mcpArguments, { below: 'any', ...ofBatch })],
  ['mcp.resource', mcp('string', alias.claimedResource, alias.mcpResource, ofBatch)],
  ['mcp.prompt', mcp('string', alias.claimedPrompt, alias.mcpPrompt, ofBatch)],
  ['mcp.batchSize', mcp('number', alias.claimedBatchSize, alias.mcpBatchSize)],
  ['llm.provider', headText(llm.llmProvider, { ofPath: true, values: llm.llmProviders, normalise: lower })],
  ['llm.model', ofWhole('string', llm.llmModel)],
  ['llm.stream', ofWhole('boolean', llm.llmStream)],
  ['llm.maxTokens', ofWhole('number', llm.llmMaxTokens)],
  ['llm.tools', ofWhole('string', llm.llmTools, { several: true })],
  ['llm.messages', ofWhole('number', llm.llmMessages)],
  ['llm.roles', ofWhole('string', llm.llmRoles, { several: true })],
  ['llm.promptBytes', ofWhole('number', llm.llmPromptBytes)],
  ['llm.costAtMost', headValue('number', facts => facts.maxCost, { phase: 'body' })],
  ['graphql.operation', ofWhole('string', graphql.graphqlOperation, ofBatch)],
  ['graphql.name', ofWhole('string', graphql.graphqlName, ofBatch)],
  ['graphql.fields', ofWhole('string', graphql.graphqlFields, { several: true, ...ofBatch })],
  ['agent.id', agentText('id')],
  ['agent.name', agentText('name')],
  ['agent.ownerId', agentText('ownerId')],
  ['agent.status', agentText('status')],
  ['agent.policyName', agentText('policyName')],
  ['agent.ageHours', headValue('number', facts => (facts.request.now - facts.agent.createdAt) / millisecondsPerHour)],
  ['agent.tags', headText(facts => facts.agent.tags, { below: 'name', exactNames: true })],
  ['agent.claims', headValue('json', facts => facts.agent.claims ?? unreadable, { below: 'any', exactNames: true })],
  ['agent.trustScore', headValue('number', facts => facts.agent.trustScore)],
  ['agent.requestsLastMinute', counter('requestsLastMinute')],
  ['agent.deniedLast10m', counter('deniedLast10m')],
  ['agent.hitlLast24h', counter('hitlLast24h')],
  ['agent.toolChangesLast24h', counter('toolChangesLast24h')],
  ['agent.bytesToday', counter('bytesToday')],
  ['agent.spendToday', spent('spendToday')],
  ['agent.spendThisMonth', spent('spendThisMonth')],
  ['agent.tokensToday', spent('tokensToday')],
  ['agent.hostSeen', headValue('boolean', facts => facts.activity?.hostSeen(facts.request.host) ?? unreadable)],
  ['budget.used', ofBudget('used')],
  ['budget.remaining', ofBudget('remaining')],
  ['time.now', time('now')],
  ['time.date', time('date')],
  ['time.clock', time('clock')],
  ['time.hour', time('hour', { type: 'number', channel: 'json' })],
  ['time.dayOfWeek', time('dayOfWeek', { values: days, normalise: lower })],
  ['risk.score', headValue('number', () => unknown, { phase: 'risk' })],
])
