import type { Activity } from '../../base/activity.ts'
import { canonicalAddress, classifyAddress } from '../../base/address.ts'
import { memoized } from '../../base/memo.ts'
import { percentDecoded } from '../../base/percent.ts'
import { missing, unknown, unreadable } from '../values/truth.ts'
import { type BodyHeaders, BodyView, noBody } from './body.ts'
import type { Form } from './form.ts'
import { readQuery } from './form-reading.ts'
import type { AgentFacts, Destination, RequestBody, RequestHead, SpendFacts } from './input.ts'
import type { McpHeads } from './mcp-heads.ts'

const emptyBody: RequestBody = { bytes: new Uint8Array(0), complete: true }

/** One request as rules read it. All but the plain strings of the head is computed on first use. */
export class Facts {
  readonly request: RequestHead
  /** Bounds of the risk score, for `risk.score`. */
  readonly risk: RiskSource
  /** The path, as one of its readings has it. */
  readonly path: string
  /** What the head of an MCP request claims of its body. */
  readonly mcp: McpHeads | undefined
  #readings: readonly Facts[] | undefined
  #body: BodyView | undefined
  #query: Form | undefined
  #segments: readonly string[] | undefined
  #mediaType: string | string[] | typeof missing | undefined
  #agent: AgentFacts | undefined
  #activity: Activity | undefined | null = null
  #spend: SpendFacts | undefined | null = null
  #held: RequestBody | undefined
  #destination: Destination | undefined | null = null

  constructor(request: RequestHead, risk: RiskSource, path = request.path) {
    this.request = request
    this.risk = risk
    this.path = path
    this.mcp = request.mcp
    this.#body = request.contentLength === 0 ? noBody : undefined
  }

  /** The head once for each reading of the path, the literal one first; undefined when there is only one. */
  get readings(): readonly Facts[] | undefined {
    const { readings } = this.request
    if (readings === undefined) return undefined
    this.#readings ??= readings.map(path => new Facts(this.request, this.risk, path))
    return this.#readings
  }

  /** The URL with the path as this reading has it. */
  get url(): string {
    const { url, path, scheme } = this.request
    if (this.path === path) return url
    const begin = url.indexOf('/', scheme.length + 3)
    return url.slice(0, begin) + this.path + url.slice(begin + path.length)
  }

  /** The body; undefined while it is not known. */
  get body(): BodyView | undefined {
    return this.#body
  }

  withBody(body: RequestBody, risk: RiskSource): Facts {
    const facts = new Facts(this.request, risk)
    // A value that was read is kept: a match must not be explained by a counter that has changed since.
    facts.#agent = this.#agent
    facts.#activity = this.#activity
    facts.#spend = this.#spend
    facts.#held = body
    facts.#destination = this.#destination
    facts.#body = new BodyView(body, this.#bodyHeaders())
    return facts
  }

  /** Read once: the caller may make it up when asked. */
  get agent(): AgentFacts {
    this.#agent ??= this.request.agent
    return this.#agent
  }

  get activity(): Activity | undefined {
    if (this.#activity === null) this.#activity = this.request.activity
    return this.#activity
  }

  get spend(): SpendFacts | undefined {
    if (this.#spend === null) this.#spend = this.request.spend
    return this.#spend
  }

  /** The most that a call of a model can cost. */
  get maxCost(): number | typeof missing | typeof unknown | typeof unreadable {
    if (this.body === undefined) return unknown
    const { readings } = this.request
    const { bytes, complete } = this.#held ?? emptyBody
    const cost = complete && readings === undefined ? this.request.maxCost?.(bytes) : undefined
    return cost === 'none' ? missing : (cost ?? unreadable)
  }

  get destination(): Destination | undefined {
    if (this.#destination === null) this.#destination = this.request.destination
    return this.#destination
  }

  get query(): Form {
    this.#query ??= readQuery(this.request.queryString)
    return this.#query
  }

  /** Split before decoding, so that an encoded slash stays inside its segment. */
  get segments(): readonly string[] {
    const { path } = this
    this.#segments ??= path.length <= 1 ? [] : path.slice(1).split('/').map(decodeSegment)
    return this.#segments
  }

  /** Media type alone, lower case; a list when Content-Type is repeated, `missing` without it. */
  get mediaType(): string | string[] | typeof missing {
    this.#mediaType ??= mediaTypesOf(this.header('content-type'))
    return this.#mediaType
  }

  get bodySize(): number | typeof unknown | typeof unreadable {
    if (this.request.contentLength >= 0) return this.request.contentLength
    return this.#body === undefined ? unknown : (this.#body.size ?? unreadable)
  }

  /** Value of a field by its lower-case name; a list when it is repeated; `missing`. */
  header(name: string): string | string[] | typeof missing {
    const fields = this.request.rawHeaders
    let found: string | string[] | typeof missing = missing
    for (let at = 0; at + 1 < fields.length; at += 2) {
      const candidate = fields[at]!
      if (candidate.length !== name.length) continue
      if (candidate !== name && candidate.toLowerCase() !== name) continue
      const value = fields[at + 1]!
      if (found === missing) found = value
      else if (Array.isArray(found)) found.push(value)
      else found = [found, value]
    }
    return found
  }

  #bodyHeaders(): BodyHeaders {
    const type = this.header('content-type')
    const mediaType = this.mediaType
    const encodings = this.header('content-encoding')
    return {
      // Two Content-Type lines can be read in two ways; then the body is read by its bytes alone.
      mediaType: typeof mediaType === 'string' ? mediaType : '',
      charset: type === missing ? '' : charsetOf(String(type)),
      encoding: encodings === missing ? '' : String(encodings).trim().toLowerCase(),
    }
  }
}

/** Least and greatest score that is still possible, each in [0, 1]. */
export interface RiskInterval {
  readonly low: number
  readonly high: number
}

export interface RiskSignal {
  readonly signal: string
  readonly points: number
  readonly detail?: string
}

export interface RiskSource {
  /** The score itself once the body is known. */
  interval(facts: Facts): RiskInterval
  /** Asks no more of the body than it takes to know on which side of the threshold the score is. */
  against(threshold: number, facts: Facts): RiskInterval
  /** The interval from signals that were computed before, and from secrets: each held body is searched for them. */
  known(facts: Facts): RiskInterval
  /** What was found so far, largest first. */
  signals(facts: Facts): readonly RiskSignal[]
}

function mediaTypesOf(value: string | string[] | typeof missing): string | string[] | typeof missing {
  if (value === missing) return missing
  return typeof value === 'string' ? mediaTypeOf(value) : value.map(mediaTypeOf)
}

function mediaTypeOf(contentType: string): string {
  const end = contentType.indexOf(';')
  return (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase()
}

/** The charset parameter; of several, all of them, which is the name of no charset. */
function charsetOf(contentType: string): string {
  if (!contentType.includes(';')) return ''
  const found = contentType.matchAll(/;\s*charset\s*=\s*"?([^\s";,]+)/gi)
  return [...new Set(Array.from(found, ([, charset = '']) => charset.toLowerCase()))].join()
}

const decodeSegment = (segment: string): string =>
  segment.includes('%') ? (percentDecoded(segment) ?? segment) : segment

/**
 * The destination as rules see it: the address in its one spelling, and its class. Each allowed request asks for its own, and
 * there are few.
 */
export const destinationOf = memoized(10_000, (ip: string): Destination => {
  const kind = classifyAddress(ip)
  const special = kind === 'unspecified' || kind === 'multicast' || kind === 'embedded'
  return { ip: canonicalAddress(ip) ?? ip, class: special ? 'reserved' : kind }
})
