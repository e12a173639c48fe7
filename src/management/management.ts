import type { Registry } from '../agents/registry.ts'
import type { Clock } from '../clock.ts'
import type { EventLog } from '../hitl/events.ts'
import type { Grants } from '../hitl/grants.ts'
import type { Queue } from '../hitl/queue.ts'
import type { PolicyBook } from '../policies/book.ts'
import type { Store } from '../storage/store.ts'
import { agentHandlers } from './agents.ts'
import { auditHandlers } from './audit.ts'
import { docsHandlers } from './docs.ts'
import { grantHandlers } from './grants.ts'
import { createGuard, type GuardParts } from './guard.ts'
import { healthHandlers } from './health.ts'
import { hitlHandlers } from './hitl.ts'
import { eventHandlers } from './hitl-events.ts'
import { type MetricsPage, metricsHandlers, withPublicMetrics } from './metrics.ts'
import { openApi } from './openapi.ts'
import { type Explain, type PolicyParts, policyHandlers } from './policies.ts'
import { createRouter, type Management } from './router.ts'
import { type TokenCallParts, tokenHandlers } from './tokens.ts'

/** The parts of human in the loop that have management operations. */
interface HitlServices {
  readonly queue: Queue
  readonly grants: Pick<Grants, 'list' | 'revoke'>
  readonly events: EventLog
  /** Aborts when the gateway stops. */
  readonly stopping: AbortSignal
}

/** Milliseconds that `GET /health` waits for its checks. */
const healthTimeLimit = 2_000

export interface ManagementParts extends TokenCallParts {
  readonly registry: Registry
  readonly book: PolicyBook
  readonly explain: Explain
  readonly shadows: PolicyParts['shadows']
  readonly hitl: HitlServices
  readonly verify: GuardParts['verify']
  readonly noteRefusal: GuardParts['noteRefusal']
  readonly takeCall: GuardParts['takeCall']
  readonly store: Pick<Store, 'audit' | 'ping'>
  /** Whether log lines are written. */
  readonly logIsWritten: () => boolean
  readonly metrics: { readonly page: MetricsPage; readonly isPublic: boolean }
  readonly clock: Clock
  /** System:Server:AllowedHosts. */
  readonly allowedHosts: readonly string[]
}

/** The control plane: everything that is not `/proxy/`. */
export function createManagement(parts: ManagementParts): Management {
  const { registry, book, hitl, store, clock } = parts
  const guard = createGuard({
    verify: parts.verify,
    agent: id => registry.get(id),
    noteRefusal: parts.noteRefusal,
    takeCall: parts.takeCall,
    subscribe: listener => registry.subscribe(listener),
    clock,
    allowedHosts: parts.allowedHosts,
  })
  const metrics = metricsHandlers(parts.metrics.page)
  const open = {
    ...(parts.metrics.isPublic ? metrics : {}),
    ...tokenHandlers(parts),
    ...healthHandlers({
      checks: { storage: () => store.ping() },
      watched: { log: parts.logIsWritten },
      timeLimit: healthTimeLimit,
      clock,
    }),
    ...docsHandlers(),
  }
  const guarded = {
    ...(parts.metrics.isPublic ? {} : metrics),
    ...agentHandlers({ registry, hasPolicy: name => book.entry(name) !== undefined, clock }),
    ...policyHandlers(parts),
    ...hitlHandlers(hitl.queue),
    ...grantHandlers(hitl.grants, id => registry.get(id)?.name),
    ...eventHandlers(hitl),
    ...auditHandlers(store.audit),
  }
  return createRouter(parts.metrics.isPublic ? withPublicMetrics(openApi) : openApi, { open, guarded }, guard)
}
