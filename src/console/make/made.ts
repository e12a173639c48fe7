import { useRef } from 'preact/hooks'
import { call, type Failure } from '../api.ts'
import { useAsync } from '../parts/async.ts'
import { readRequest } from '../request/exact.ts'
import { mayRead, session } from '../session.ts'
import type { Agent, Condition, HitlRequest, Policy, RuleDraft } from '../types.ts'
import { draftRule, type Order, typed } from './order.ts'
import { leastPriority } from './priority.ts'

/** Where a rule comes from. */
export interface Source {
  /** The held request; undefined: the rule comes from what was recorded, or typed. */
  readonly view: HitlRequest | undefined
  /** Undefined: whoever asks may not read it. */
  readonly agent: Agent | undefined
  /** That of the agent. */
  readonly policy: Policy | undefined
}

export async function readSource({ hitl, agent }: Pick<Order, 'hitl' | 'agent'>): Promise<Source | Failure> {
  const held = hitl === undefined ? undefined : await readRequest(hitl)
  if (held?.ok === false) return held.failure
  const view = held?.data
  const id = view?.agentId ?? agent
  if (!mayRead.peek() || id === undefined) return { view, agent: undefined, policy: undefined }
  const read = await call<Agent>('GET', `/agents/${encodeURIComponent(id)}`)
  if (!read.ok) return read.failure
  const { policyName } = read.data
  const policy =
    policyName === null ? undefined : await call<Policy>('GET', `/policies/${encodeURIComponent(policyName)}`)
  return { view, agent: read.data, policy: policy?.ok === true ? policy.data : undefined }
}

export interface Made {
  readonly source: Source
  readonly draft: RuleDraft
  /** As the rule was made: with the priority that it has. */
  readonly order: Order
}

/** How long a choice must rest before the rule is made again, milliseconds. */
const restMs = 250

interface State {
  readonly made: Made | undefined
  readonly failure: Failure | undefined
  /** Whether it is what the address says now. */
  readonly isCurrent: boolean
}

/** The rule that the address asks for. What was made last stays while the next one is made. */
export function useMade(order: Order): State {
  const { kind } = session.value
  const read = kind === 'active' ? () => readSource(order) : undefined
  const { last: source } = useAsync(read, [order.hitl, order.agent, kind])
  const isRead = source !== undefined && !('code' in source)
  const rule = isRead ? (leaving: AbortSignal) => make(order, source, leaving) : undefined
  const { last, current } = useAsync(rule, [source, JSON.stringify(order), typed.value], restMs)
  const made = useRef<Made>(undefined)
  if (source !== undefined && !isRead) return { made: undefined, failure: source, isCurrent: true }
  if (last !== undefined && !('code' in last)) made.current = last
  const failure = last !== undefined && 'code' in last ? last : undefined
  return { made: made.current, failure, isCurrent: current !== undefined }
}

/** What the address leaves open: a name from what the rule takes, and the lowest priority at which it decides the request. */
export async function make(order: Order, source: Source, signal?: AbortSignal): Promise<Made | Failure> {
  const first = await draftRule(order, signal)
  if (!first.ok) return first.failure
  const { rule, decidedBy } = first.data
  const { policy } = source
  const priority = order.priority ?? (policy === undefined ? 0 : leastPriority(policy, decidedBy, order.effect))
  const whole = { ...order, priority, name: order.name ?? nameOf(rule) }
  const second = await draftRule(whole, signal)
  return second.ok ? { source, draft: second.data, order: whole } : second.failure
}

/** `post-v1-refunds-int`. */
function nameOf(rule: RuleDraft['rule']): string {
  const conditions = rule['conditions'] as readonly Condition[]
  const valueAt = (field: string) => [conditions.find(one => one.field === field)?.value ?? 'any'].flat()[0]
  const words = `${valueAt('input.method')}${valueAt('input.path')}`.replace(/\{id:/g, '')
  return words
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/-+$/, '')
    .slice(0, 60)
}
