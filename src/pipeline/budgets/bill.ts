/** What a call can cost, before it is sent; and what it cost, once it is over. */
import { type Refusal, refuse } from '../../base/refusals.ts'
import type { Target } from '../../base/target.ts'
import type { Config } from '../../config/schema.ts'
import { overridesMethod } from '../../http/method-override.ts'
import { type CalledModel, calledModel, type Format, isFree, writesNothing } from '../../llm/formats.ts'
import { type ModelRequest, maxUsage, outputOfBytes, readModelRequest } from '../../llm/model-request.ts'
import type { ProviderAt, ProviderId } from '../../llm/providers.ts'
import { type Usage, wholeOf } from '../../llm/usage.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Pricing } from '../answers/pricing.ts'
import type { CallUsage } from '../answers/usage-meter.ts'

/** An amount of each unit in which budgets count a model's work. */
export interface Cost {
  readonly tokens: number
  /** In Metering:Currency; undefined: no budget counts it. */
  readonly money: number | undefined
}

export const noCost: Cost = { tokens: 0, money: 0 }

/** How a call at a provider is metered. `free`: it costs nothing. `other`: no answer tells what it cost. */
export type MeteredKind = 'free' | 'other' | { readonly perCall: number } | CalledModel

export interface BillParts {
  readonly config: Pick<Config, 'Metering'>
  readonly clock: Clock
  readonly prices: Pricing
  readonly providerAt: ProviderAt
}

/** A call of a model that budgets of tokens or money apply to. */
export interface BilledModel {
  readonly provider: ProviderId
  readonly target: Target
  readonly called: CalledModel
  readonly request: ModelRequest
  readonly bodyBytes: number
}

/** The same, and what it can use. */
export interface BoundedModel extends BilledModel {
  /** Tokens that the call can use. */
  readonly usage: Usage
  /** Nothing may be counted that is less than it cost: a budget with Exact applies. */
  readonly isStrict: boolean
}

export function boundedModel(
  { provider, target, called, request, bodyBytes }: BilledModel,
  isStrict: boolean,
): BoundedModel {
  const usage = maxUsage(request, bodyBytes, { writes: !writesNothing(target.path), isStrict })
  return { provider, target, called, request, bodyBytes, usage, isStrict }
}

/** Methods that send nothing to a model. */
const readingMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'DELETE'])

interface SentCall {
  readonly method: string
  readonly target: Target
  readonly rawHeaders: readonly string[]
}

/** @param isStream it opens a WebSocket or a tunnel, whose content is not read */
export function kindOf({ method, target, rawHeaders }: SentCall, isStream: boolean, parts: BillParts): MeteredKind {
  if (isStream || (method !== 'POST' && overridesMethod(target.query ?? '', rawHeaders))) return 'other'
  if (readingMethods.has(method)) return 'free'
  const called = method === 'POST' ? calledModel(target.path) : undefined
  if (called !== undefined) return called
  if (isFree(target.path)) return 'free'
  const provider = parts.providerAt(target.origin)
  const priced = provider && {
    origin: target.origin,
    provider,
    model: undefined,
    tokens: noUsage,
  }
  const perCall = priced && parts.prices.chargeOf(priced, parts.clock.now())
  return perCall === undefined || perCall === 0 ? 'other' : { perCall }
}

const noUsage: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0 }

/** Reads what a call of a model asks for. */
export function readBilled(
  { target, rawHeaders }: { readonly target: Target; readonly rawHeaders: readonly string[] },
  called: CalledModel,
  body: Buffer,
  { config, providerAt }: BillParts,
): BilledModel | Refusal {
  const provider = providerAt(target.origin)
  if (provider === undefined) throw new Error('cannot happen: a model without a provider')
  const request = readModelRequest(called, body)
  if (request === undefined) return refuse('call_unmetered', unreadable)
  if (called.format === 'gemini' && asksForParts(target, rawHeaders)) return refuse('call_unmetered', partial)
  const mustAsk = config.Metering.MissingUsage === 'Refuse' && request.streams && !request.asksUsage
  if (mustAsk && asksInBody(called, target.path)) return refuse('usage_not_asked')
  return { provider, target, called, request, bodyBytes: body.length }
}

const unreadable =
  'The body of this call must be a JSON object whose model and numbers of tokens every server reads in the same way, with 1,000 members, 16 fallback models and 16 KiB in each of these members at most, and whose metadata and user have 2 KiB at most, without an object usage.'
const partial = 'This call asks for a part of the answer, or for another form than JSON, so its usage may not be in it.'

/** Google leaves members out of an answer when the query or a field says so. */
function asksForParts({ query = '' }: Target, rawHeaders: readonly string[]): boolean {
  const parameters = new URLSearchParams(query)
  const hides = ['fields', '$fields'].some(name => parameters.has(name))
  const isOther = parameters
    .getAll('alt')
    .concat(parameters.getAll('$alt'))
    .some(form => !/^(?:json|sse)$/i.test(form))
  return hides || isOther || rawHeaders.some((name, at) => at % 2 === 0 && name.toLowerCase() === 'x-goog-fieldmask')
}

/** Where a stream tells its usage only when it is asked to. */
const asksInBody = ({ format }: CalledModel, path: string): boolean =>
  format === 'openai' && /\/completions\/?$/.test(path)

/** The highest cost of a call, as far as its request shows; undefined: one of its models has no price. */
export function maxCostOf(model: BoundedModel, parts: BillParts): number | undefined {
  const { usage, isStrict } = model
  if (!isStrict) return dearest(model, usage, parts)
  const written = { ...usage, input: 0 }
  // All that is read may be written to a cache, which costs more.
  const kinds = [usage, { ...written, cacheWrite: usage.input }, { ...written, cacheWriteLong: usage.input }]
  return highestOf(kinds.map(tokens => dearest(model, tokens, parts)))
}

/** What the tokens cost with the dearest of the models that may answer; undefined: one of them has no price. */
const dearest = (call: BilledModel, tokens: Usage, parts: BillParts): number | undefined =>
  highestOf(call.request.models.map(model => chargeAt(call, { model, tokens }, parts)))

const highestOf = (costs: readonly (number | undefined)[]): number | undefined =>
  costs.reduce((max, cost) => (max === undefined || cost === undefined ? undefined : Math.max(max, cost)))

const chargeAt = (
  { provider, target }: BilledModel,
  of: { readonly model: string | undefined; readonly tokens: Usage },
  { prices, clock }: BillParts,
): number | undefined => prices.chargeOf({ origin: target.origin, provider, ...of }, clock.now())

/** The first of its models that has no price. */
export const unpricedModel = (call: BoundedModel, parts: BillParts): string | undefined =>
  call.request.models.find(model => chargeAt(call, { model, tokens: call.usage }, parts) === undefined)

/** What rules read of it. `none`: it is no call of a model; undefined: not known. */
export function maxCost(call: SentCall, body: Buffer, parts: BillParts): number | 'none' | undefined {
  const { target, rawHeaders } = call
  const provider = parts.providerAt(target.origin)
  if (provider === undefined) return 'none'
  const isStream = rawHeaders.some((name, at) => at % 2 === 0 && name.toLowerCase() === 'upgrade')
  const called = kindOf(call, isStream, parts)
  if (called === 'free') return 0
  if (called === 'other') return undefined
  if ('perCall' in called) return called.perCall
  const request = readModelRequest(called, body)
  if (request === undefined) return undefined
  return maxCostOf(boundedModel({ provider, target, called, request, bodyBytes: body.length }, false), parts)
}

export interface CallEnd {
  /** Of the answer; undefined: no head came. */
  readonly status: number | undefined
  readonly usage: CallUsage | undefined
  /** Bytes of the answer that were read for its usage; undefined: it could not be read. */
  readonly bytes: number | undefined
  /** All of the answer came. */
  readonly isWhole: boolean
  /** How long the model may have thought without showing it. */
  readonly thoughtMs: number
}

export interface FinalCost extends Cost {
  readonly isEstimated: boolean
}

const free: FinalCost = { ...noCost, isEstimated: false }

/** What a call that was sent cost. @param max the highest cost */
export function finalCost(model: BoundedModel, max: Cost, end: CallEnd, parts: BillParts): FinalCost {
  const { status, usage, bytes } = end
  const highest: FinalCost = { ...max, isEstimated: true }
  if (status === undefined) return highest
  if (status < 200 || status > 299) return free
  if (usage?.tokens !== undefined && usage.how === 'read') {
    return { ...costOfUsage(model, usage.tokens, usage.model, parts), isEstimated: false }
  }
  if (model.request.isBackground || bytes === undefined) return highest
  const least = usage?.tokens
  const output = Math.max(least?.output ?? 0, outputOfBytes(model.called.format, bytes), hiddenOutput(model, end))
  const tokens: Usage = least === undefined ? { ...model.usage, output } : { ...least, output }
  const found = costOfUsage(model, tokens, usage?.model, parts)
  return { ...bounded(found, max, leastShare(model, end.isWhole)), isEstimated: true }
}

/** Tokens that a model writes in a millisecond: several times as many as the fastest that hides its thoughts. */
const fastest = 1

/** Tokens that a model may have thought in the time of an answer that was cut off, and that nothing shows. */
const hiddenOutput = ({ called, usage }: BoundedModel, { isWhole, thoughtMs }: CallEnd): number =>
  isWhole || !hidesThoughts.has(called.format) ? 0 : Math.min(usage.output, Math.ceil(thoughtMs * fastest))

/** Formats whose streams need not show all that the model thinks. */
const hidesThoughts: ReadonlySet<Format> = new Set(['anthropic', 'bedrock', 'bedrock-invoke'])

/** Share of the highest cost that an answer without usage costs at least: a model may have thought more than it shows. */
function leastShare({ called, request, isStrict }: BoundedModel, isWhole: boolean): number {
  // A whole document always tells: this one was made not to.
  if (isStrict || (isWhole && !request.streams)) return 1
  return isWhole || called.format === 'openai' ? 0.5 : 0
}

/** The price is that of the model that answered, else of the dearest one that was asked for. */
function costOfUsage(call: BilledModel, tokens: Usage, model: string | undefined, parts: BillParts): Cost {
  const { provider, target } = call
  const priced = { origin: target.origin, provider, model, tokens }
  const known = model === undefined ? undefined : parts.prices.costOf(priced, parts.clock.now())
  return { tokens: wholeOf(tokens), money: known ?? dearest(call, tokens, parts) }
}

/** An estimate is at most the highest cost, and at least this share of it. */
function bounded(found: Cost, max: Cost, share: number): Cost {
  const within = (value: number, highest: number) => Math.min(highest, Math.max(value, highest * share))
  const money = max.money === undefined ? undefined : within(found.money ?? max.money, max.money)
  return { tokens: within(found.tokens, max.tokens), money }
}
