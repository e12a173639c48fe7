import type { Registration } from '../agents/registration.ts'
import { generateSecret } from '../agents/secret.ts'
import { isRefusal, type Refusal } from '../base/refusals.ts'
import { jsonReply, type Reply } from '../http/respond.ts'
import type { AgentRecord } from '../storage/store.ts'
import { by, policyProblem } from './agents.ts'
import { bodyOf, type Handlers, type ManagementCall } from './call.ts'
import { createOnce } from './idempotency.ts'
import type { ManagementParts } from './parts.ts'

const weakSecretWarning = 'clientSecret: is short or easy to guess. Leave it out, and the gateway makes one'

/** `POST /agents` (spec 4.2). */
export function registrationHandlers({ registry, book, store }: ManagementParts): Handlers['guarded'] {
  async function register(call: ManagementCall, id: Pick<Registration, 'id'>): Promise<Reply | Refusal> {
    const given = bodyOf<Omit<Registration, 'clientSecret'> & Partial<Registration>>(call)
    const registration: Registration = { ...given, ...id, clientSecret: given.clientSecret ?? generateSecret() }
    const problem = policyProblem(book, registration.policyName)
    if (problem !== undefined) return problem
    const agent = await registry.register(registration, by(call))
    return isRefusal(agent) ? agent : registered(agent, given, registration.clientSecret)
  }

  return {
    registerAgent: call =>
      createOnce(store, call, {
        within: ['registerAgent'],
        noted: subject => ({ subject }),
        onRepeat: 'For a new secret of the agent: POST /agents/{agentId}/rotate-secret.',
        create: id => register(call, id),
      }),
  }
}

function registered(agent: AgentRecord, given: Partial<Registration>, clientSecret: string): Reply {
  const { id, name, weakSecret } = agent
  // An agent of the identity provider needs no secret; rotating it creates one.
  const isShown = given.clientSecret !== undefined || given.externalSubject === undefined
  const secret = isShown ? { clientSecret } : {}
  const warnings = weakSecret ? { warnings: [weakSecretWarning] } : {}
  return jsonReply(201, { id, name, ...secret, ...warnings }, ['Location', `/agents/${id}`])
}
