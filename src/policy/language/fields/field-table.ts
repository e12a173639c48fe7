import { canonicalAddress } from '../../../base/address.ts'
import { normaliseHost } from '../../../base/host.ts'
import { parseTarget } from '../../../base/target.ts'
import type { Facts } from '../../request/facts.ts'
import type { Activity, RequestHead } from '../../request/input.ts'
import { missing, unknown, unreadable } from '../../values/truth.ts'
import * as alias from './aliases.ts'
import { days, type WallTime, type Zone } from './zone.ts'

/** What is known about a field of the language: the rows of the contract's table. */
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
  /** Taken from the path, which servers may read in more than one way: conditions are asked of every reading. */
  readonly ofPath?: true
  readonly header?: true
  readonly several?: true
  readonly plain?: (facts: Facts) => string
  readonly read: (facts: Facts, zone: Zone) => unknown
}

const upper = (text: string) => text.toUpperCase()
const lower = (text: string) => text.toLowerCase()
/** `HTTPS://API.example.com:443` is `https://api.example.com`; a URL with a path is not an origin. */
const origin = (text: string) => {
  const target = parseTarget(text)
  return typeof target === 'string' || target.requestTarget !== '/' ? undefined : target.origin.key
}
const host = (text: string) => normaliseHost(text.toLowerCase())

interface HeadOptions {
  readonly normalise?: FieldKind['normalise'] & {}
}

function headString(key: keyof RequestHead & string, options: HeadOptions = {}): FieldKind {
  const plain = (facts: Facts) => facts.request[key] as string
  return { phase: 'head', type: 'string', below: 'none', channel: 'text', plain, read: plain, ...options }
}

function pathString(plain: (facts: Facts) => string): FieldKind {
  return { phase: 'head', type: 'string', below: 'none', channel: 'text', plain, read: plain, ofPath: true }
}

function headValue(type: FieldKind['type'], read: FieldKind['read']): FieldKind {
  return { phase: 'head', type, below: 'none', channel: 'json', read }
}

function readBody(facts: Facts): unknown {
  return facts.body === undefined ? unknown : facts.body.value
}

function time(key: keyof WallTime, type: FieldKind['type'], values?: readonly string[]): FieldKind {
  const read = (facts: Facts, zone: Zone) => zone.at(facts.request.now)[key]
  const kind: FieldKind = { ...headValue(type, read), channel: 'text' }
  return values === undefined ? kind : { ...kind, values, normalise: lower }
}

/** A name for something in JSON bodies of one protocol; other readable bodies do not have it. */
function aliasValue(type: FieldKind['type'], take: (body: unknown) => unknown): FieldKind {
  const read = (facts: Facts) => {
    if (facts.body?.kind === 'form') return missing
    const body = readBody(facts)
    return typeof body === 'symbol' ? body : take(body)
  }
  return { phase: 'body', type, below: 'none', channel: 'json', read }
}

/** A counter; unreadable when the caller of the engine keeps none. */
function activity(read: (activity: Activity, facts: Facts) => unknown): FieldKind['read'] {
  return facts => {
    const counters = facts.activity
    return counters === undefined ? unreadable : read(counters, facts)
  }
}

const orMissing = (value: unknown) => value ?? missing
const agentText = (read: (facts: Facts) => unknown): FieldKind => ({
  ...headValue('string', facts => orMissing(read(facts))),
  channel: 'text',
})

const millisecondsPerHour = 3_600_000
const bodyKinds = ['none', 'json', 'form', 'multipart', 'text', 'binary', 'invalid', 'truncated', 'encoded']
const classes = ['public', 'private', 'loopback', 'linkLocal', 'metadata', 'reserved']
const destinationClass = (text: string) => classes.find(name => lower(name) === lower(text)) ?? text

/** Clients over a unix socket have a word in place of an address. */
const address = (text: string) => canonicalAddress(text) ?? text.toLowerCase()

/** Addresses are known after name resolution; a rule that reads one without it cannot be evaluated. */
const destination = (key: 'ip' | 'class', type: FieldKind['type']): FieldKind => ({
  ...headValue(type, facts => facts.destination?.[key] ?? unreadable),
  channel: 'text',
  destination: true,
})

export const fieldKinds: ReadonlyMap<string, FieldKind> = new Map<string, FieldKind>([
  ['input.method', headString('method', { normalise: upper })],
  ['input.url', pathString(facts => facts.url)],
  ['input.origin', headString('origin', { normalise: origin })],
  ['input.scheme', headString('scheme', { normalise: lower })],
  ['input.host', headString('host', { normalise: host })],
  ['input.port', headValue('number', facts => facts.request.port)],
  ['input.path', pathString(facts => facts.path)],
  // As received: for rules on the spelling itself.
  ['input.rawPath', headString('rawPath')],
  [
    'input.pathSegments',
    { ...headValue('string', facts => facts.segments), below: 'list', channel: 'text', ofPath: true },
  ],
  ['input.queryString', headString('queryString')],
  ['input.query', { ...headValue('string', facts => facts.query), below: 'name', channel: 'text' }],
  ['input.headers', { ...headValue('string', () => missing), below: 'name', channel: 'text', header: true }],
  ['input.contentType', { ...headValue('string', facts => facts.mediaType), channel: 'text', normalise: lower }],
  ['input.bodyInfo.size', { ...headValue('number', facts => facts.bodySize), phase: 'body' }],
  [
    'input.bodyInfo.kind',
    {
      ...headValue('string', facts => facts.body?.kind ?? unknown),
      phase: 'body',
      normalise: lower,
      values: bodyKinds,
    },
  ],
  ['input.body', { phase: 'body', type: 'json', below: 'any', channel: 'json', read: readBody }],
  ['input.bodyText', { ...headValue('string', facts => facts.body?.text ?? unknown), phase: 'body' }],
  ['input.destinationIp', { ...destination('ip', 'address'), normalise: address }],
  ['input.destinationClass', { ...destination('class', 'string'), normalise: destinationClass, values: classes }],
  [
    'input.clientIp',
    { ...headValue('address', facts => facts.request.clientIp ?? unreadable), channel: 'text', normalise: address },
  ],
  ['mcp.method', { ...aliasValue('string', alias.mcpMethod), several: true }],
  ['mcp.tool', { ...aliasValue('string', alias.mcpTool), several: true }],
  ['mcp.arguments', { ...aliasValue('json', alias.mcpArguments), below: 'any', several: true }],
  ['mcp.batchSize', aliasValue('number', alias.mcpBatchSize)],
  ['llm.model', aliasValue('string', alias.llmModel)],
  ['llm.stream', aliasValue('boolean', alias.llmStream)],
  ['llm.maxTokens', aliasValue('number', alias.llmMaxTokens)],
  ['llm.tools', { ...aliasValue('string', alias.llmTools), several: true }],
  ['llm.promptBytes', aliasValue('number', alias.llmPromptBytes)],
  ['agent.id', agentText(facts => facts.agent.id)],
  ['agent.name', agentText(facts => facts.agent.name)],
  ['agent.ownerId', agentText(facts => facts.agent.ownerId)],
  ['agent.status', agentText(facts => facts.agent.status)],
  ['agent.policyName', agentText(facts => facts.agent.policyName)],
  ['agent.ageHours', headValue('number', facts => (facts.request.now - facts.agent.createdAt) / millisecondsPerHour)],
  ['agent.tags', { ...headValue('string', facts => facts.agent.tags), below: 'name', channel: 'text' }],
  ['agent.claims', { ...headValue('json', facts => facts.agent.claims ?? unreadable), below: 'any' }],
  ['agent.trustScore', headValue('number', facts => facts.agent.trustScore)],
  [
    'agent.requestsLastMinute',
    headValue(
      'number',
      activity(counters => counters.requestsLastMinute),
    ),
  ],
  [
    'agent.deniedLast10m',
    headValue(
      'number',
      activity(counters => counters.deniedLast10m),
    ),
  ],
  [
    'agent.hitlLast24h',
    headValue(
      'number',
      activity(counters => counters.hitlLast24h),
    ),
  ],
  [
    'agent.bytesToday',
    headValue(
      'number',
      activity(counters => counters.bytesToday),
    ),
  ],
  [
    'agent.hostSeen',
    headValue(
      'boolean',
      activity((counters, facts) => counters.hostSeen(facts.request.host)),
    ),
  ],
  ['time.now', time('now', 'string')],
  ['time.date', time('date', 'string')],
  ['time.clock', time('clock', 'string')],
  ['time.hour', { ...time('hour', 'number'), channel: 'json' }],
  ['time.dayOfWeek', time('dayOfWeek', 'string', days)],
  ['risk.score', { ...headValue('number', () => unknown), phase: 'risk' }],
])
