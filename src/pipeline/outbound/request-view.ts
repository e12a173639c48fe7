import { trustScore } from '../../agents/agent.ts'
import type { Activity } from '../../base/activity.ts'
import { destinationOf } from '../../policy/request/destination.ts'
import type { AgentFacts, Destination, RequestHead, SpendFacts } from '../../policy/request/input.ts'
import type { McpHeads } from '../../policy/request/mcp-heads.ts'
import { maxCost } from '../budgets/bill.ts'
import type { OutboundParts } from '../parts.ts'
import type { Call } from './call.ts'

/** A call as rules see it. Costly views are made when a rule asks for them. */
export abstract class RequestView<C extends Call> implements RequestHead {
  readonly method: string
  readonly url: string
  readonly origin: string
  readonly scheme: string
  readonly host: string
  readonly port: number
  readonly path: string
  readonly readings: readonly string[] | undefined
  readonly rawPath: string
  readonly queryString: string
  readonly contentLength: number
  readonly now: number
  protected readonly call: C
  protected readonly parts: OutboundParts

  /** @param contentLength bytes of the body; -1 when that is not known */
  constructor(call: C, contentLength: number, parts: OutboundParts) {
    const { target } = call
    this.call = call
    this.parts = parts
    this.method = call.method
    this.url = target.url
    this.origin = target.origin.key
    this.scheme = target.origin.scheme
    this.host = target.origin.host
    this.port = target.origin.port
    this.path = target.path
    this.readings = target.readings
    this.rawPath = target.path
    this.queryString = target.query ?? ''
    this.contentLength = contentLength
    this.now = parts.clock.now()
  }

  abstract get mcp(): McpHeads | undefined

  abstract get rawHeaders(): readonly string[]

  abstract get clientIp(): string

  get destination(): Destination | undefined {
    const { resolution, target } = this.call
    const ip = resolution?.addresses[0] ?? target.origin.address
    return ip === undefined ? undefined : destinationOf(ip)
  }

  get agent(): AgentFacts {
    const { agent, claims } = this.call
    const { id, name, ownerId, status, policyName, createdAt, tags } = agent
    return { id, name, ownerId, status, policyName, createdAt, tags, claims, trustScore: trustScore(agent, this.now) }
  }

  get activity(): Activity | undefined {
    return this.parts.activityOf(this.call.agent.id, this.now)
  }

  get spend(): SpendFacts | undefined {
    return this.call.spent
  }

  maxCost(body: Uint8Array): number | 'none' | undefined {
    const { bill } = this.parts
    return bill && maxCost(this.call, Buffer.from(body.buffer, body.byteOffset, body.byteLength), bill)
  }
}
