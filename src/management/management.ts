import { openApi, withPublicMetrics } from '../api/openapi.ts'
import { StoreError } from '../storage/store.ts'
import { agentHandlers } from './agents.ts'
import { auditHandlers } from './audit.ts'
import { authorityHandlers } from './authority.ts'
import { budgetHandlers } from './budgets.ts'
import { consoleFileHandlers } from './console-files.ts'
import { clientHandlers, credentialHandlers } from './credentials.ts'
import { docsHandlers } from './docs.ts'
import { draftHandlers } from './drafts.ts'
import { fleetHandlers } from './fleet.ts'
import { grantHandlers } from './grants.ts'
import { createGuard } from './guard.ts'
import { healthHandlers, metricsHandlers, proxyHealthHandlers } from './health.ts'
import { hitlHandlers } from './hitl.ts'
import { eventHandlers } from './hitl-events.ts'
import { identityHandlers } from './identities.ts'
import { keyHandlers } from './keys.ts'
import { overviewHandlers } from './overview.ts'
import type { ManagementParts } from './parts.ts'
import { policyHandlers } from './policies.ts'
import { policyChangeHandlers } from './policy-changes.ts'
import { proposalHandlers } from './proposals.ts'
import { pushHandlers } from './push.ts'
import { recordingHandlers } from './recording.ts'
import { registrationHandlers } from './registration.ts'
import { createRouter, type Management } from './router.ts'
import { signInHandlers } from './sign-in.ts'
import { slackHandlers } from './slack.ts'
import { verdictHandlers } from './verdicts.ts'

/** Milliseconds that `GET /health` waits for its checks. */
const healthTimeLimit = 2_000

/** The control plane: everything that is not `/proxy/`. */
export function createManagement(parts: ManagementParts): Management {
  const { store, clock, metrics } = parts
  const signIn = signInHandlers(parts)
  const authority = authorityHandlers(parts)
  const slack = slackHandlers(parts)
  const open = {
    ...signIn.open,
    ...authority.open,
    ...slack.open,
    ...clientHandlers(parts),
    ...(metrics.isPublic ? metricsHandlers(parts) : {}),
    ...healthHandlers({
      checks: {
        storage: async () => {
          await store.ping()
          if (parts.fencedAs?.() !== undefined) throw new StoreError('not up to date')
        },
        threads: () => (parts.threadsAnswer() ? Promise.resolve() : Promise.reject()),
      },
      watched: { log: parts.logIsWritten },
      timeLimit: healthTimeLimit,
      clock,
    }),
    ...proxyHealthHandlers(parts),
    ...docsHandlers(),
    ...consoleFileHandlers(parts.consoleFiles),
  }
  const guarded = {
    ...signIn.guarded,
    ...(metrics.isPublic ? {} : metricsHandlers(parts)),
    ...registrationHandlers(parts),
    ...agentHandlers(parts),
    ...keyHandlers(parts),
    ...identityHandlers(parts),
    ...recordingHandlers(parts),
    ...policyHandlers(parts),
    ...proposalHandlers(parts),
    ...policyChangeHandlers(parts),
    ...draftHandlers(parts),
    ...hitlHandlers(parts),
    ...verdictHandlers(parts),
    ...grantHandlers(parts),
    ...budgetHandlers(parts),
    ...credentialHandlers(parts),
    ...eventHandlers(parts),
    ...auditHandlers(parts),
    ...overviewHandlers(parts),
    ...fleetHandlers(parts),
    ...authority.guarded,
    ...slack.guarded,
    ...pushHandlers(parts),
  }
  return createRouter(
    metrics.isPublic ? withPublicMetrics(openApi) : openApi,
    { open, guarded },
    createGuard(parts),
    parts,
  )
}
