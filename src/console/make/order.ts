/** What is made from one request. The address says it, so that a link, a reload and the editor make the same. */
import { signal } from '@preact/signals'
import { call, query, type Result } from '../api.ts'
import { type Draft, requestOf } from '../policies/draft.ts'
import { effects } from '../policies/effects.ts'
import type { Effect, RuleDraft } from '../types.ts'

export interface Order {
  readonly hitl: string | undefined
  /** Where there is none: an agent, and a shape that was recorded of it. */
  readonly agent: string | undefined
  readonly shape: string | undefined
  /** Parts that the rule leaves open; undefined: those that the gateway opens by itself. */
  readonly open: readonly string[] | undefined
  readonly effect: Effect
  /** Undefined: one from what it takes. */
  readonly name: string | undefined
  /** Undefined: one at which the rule decides the request. */
  readonly priority: number | undefined
  /** Whether the rule decides nothing at first. */
  readonly inShadow: boolean
}

/** A request that was typed, where there is no shape: it is in no address, and gone after a reload. */
export const typed = signal<Draft | undefined>(undefined)

const nothing = 'none'

export function orderOf(given: URLSearchParams): Order {
  const of = (name: string) => given.get(name) ?? undefined
  const priority = Number(of('priority') ?? Number.NaN)
  return {
    hitl: of('hitl'),
    agent: of('agent'),
    shape: of('shape'),
    open: of('open')
      ?.split(',')
      .filter(part => part !== nothing),
    effect: effects.find(effect => effect === of('effect')) ?? 'Allow',
    name: of('name'),
    priority: Number.isInteger(priority) ? priority : undefined,
    inShadow: of('shadow') !== 'no',
  }
}

/** The same as it stands in the address. */
export function valuesOf({ open, priority, inShadow, ...rest }: Order): Readonly<Record<string, string | undefined>> {
  return {
    ...rest,
    open: open && (open.join(',') || nothing),
    priority: priority === undefined ? undefined : String(priority),
    shadow: inShadow ? undefined : 'no',
  }
}

export const queryOf = (order: Order): string => query({ make: 'yes', ...valuesOf(order) })

/** Asks the gateway for the rule. */
export function draftRule(order: Order, signal?: AbortSignal): Promise<Result<RuleDraft>> {
  const { hitl, agent, shape, open, effect, name, priority } = order
  const body = {
    ...(hitl === undefined ? { agentId: agent, ...requestSource(shape) } : { hitlId: hitl }),
    ...(open === undefined ? {} : { open }),
    ...(priority === undefined ? {} : { priority }),
    ...(name === undefined ? {} : { name }),
    effect,
  }
  return call<RuleDraft>('POST', '/policies/drafts', { body, ...(signal === undefined ? {} : { signal }) })
}

function requestSource(shape: string | undefined): object {
  if (shape !== undefined) return { shapeId: shape }
  return typed.peek() === undefined ? {} : { request: requestOf(typed.peek() as Draft).request }
}
