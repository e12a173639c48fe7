/**
 * The right to go on. Rights can be withdrawn while a request waits for its body, a name, a connection, the store or a
 * verdict. So they are checked again after each wait, and once more before the first byte is sent. When an agent may no
 * longer act, its requests under way end before that change is answered.
 */
import { agentProblem } from '../agents/agent.ts'
import { type Refusal, refuse } from '../base/refusals.ts'
import type { AgentRecord } from '../storage/store.ts'
import { keyIdOf } from '../tokens/agent-key.ts'
import { answer } from './answer.ts'
import type { Authenticated, Exchange } from './exchange.ts'
import type { OutboundParts } from './parts.ts'

/** Whether the agent may still act and its token is still good. */
export function isStillAdmitted(exchange: Authenticated, parts: OutboundParts): boolean {
  const { agent, token } = exchange
  if (parts.fencedAs?.() !== undefined) return false
  const now = parts.agents.get(agent.id)
  // Another record of an active agent: its trust, its roles or its policy have changed.
  if (now === undefined || (now !== agent && agentProblem(now) !== undefined)) return false
  exchange.agent = now
  // A token is good while the verifier accepts it at once: expiry, key and binding to the agent are still right.
  const claims = parts.verifyToken(token)
  return typeof claims !== 'string' && !(claims instanceof Promise) && claims.sub === agent.id
}

/** Whether the decision still holds, too: the same rules are in force for the agent. */
export function holds(exchange: Authenticated, parts: OutboundParts): boolean {
  return isStillAdmitted(exchange, parts) && parts.rulebookOf(exchange.agent) === exchange.rulebook
}

/**
 * Ends requests under way of an agent that may no longer act, and requests with a key that was revoked. Call it when the
 * registry shows a change.
 */
export function endUnlessActive(
  id: string,
  { before, now }: AgentUpdate,
  parts: Pick<OutboundParts, 'watch' | 'tunnels' | 'credentials'>,
): void {
  const problem = agentProblem(now)
  if (problem !== undefined || before?.externalSubject !== now?.externalSubject) parts.credentials.forget(id)
  const gone = before?.keys.filter(key => now?.keys.some(other => other.id === key.id) !== true).map(key => key.id)
  if (problem === undefined && !gone?.length) return
  const isLost = ({ agent, claims }: Exchange): boolean =>
    agent?.id === id && (problem !== undefined || gone?.includes(keyIdOf(claims) ?? '') === true)
  for (const exchange of parts.watch.underway(isLost)) end(exchange, problem ?? refuse('unauthenticated'))
  parts.tunnels.closeAll(id, ({ keyId }) => problem !== undefined || gone?.includes(keyId ?? '') === true)
}

/**
 * Ends all requests under way, since this gateway may lack changes that withdraw their rights. Calls that wait for a verdict
 * are answered as undecided. Returns the number of requests.
 */
export function endFenced({ watch }: Pick<OutboundParts, 'watch'>): number {
  const all = watch.underway(() => true)
  for (const exchange of all) {
    if (exchange.wait === undefined) end(exchange, refuseFenced(exchange, 'fenced'))
    else exchange.wait.end()
  }
  return all.length
}

/** The upstream may have carried out a request that was sent, so the answer must not invite the client to repeat it. */
export function refuseFenced({ sentAt }: Exchange, code: 'draining' | 'fenced'): Refusal {
  return refuse(code, sentAt === undefined || code === 'draining' ? undefined : endedMidway)
}

const endedMidway =
  'The gateway cannot reach its database, so it does not know the latest changes, and ended this request. The upstream may have carried it out.'

/** An agent before and after a change; undefined where it is not in the registry. */
interface AgentUpdate {
  readonly before: AgentRecord | undefined
  readonly now: AgentRecord | undefined
}

/**
 * A request that a grant let pass is decided again before it leaves if the grant was withdrawn.
 *
 * @param grantId undefined: any of them may have been withdrawn
 */
export function forgetGrant(grantId: string | undefined, parts: Pick<OutboundParts, 'watch'>): void {
  const isMeant = ({ grantId: by }: Exchange) => by !== undefined && by === (grantId ?? by)
  for (const exchange of parts.watch.underway(isMeant)) exchange.rulebook = exchange.usedGrant = undefined
}

/** The refusal if the client has no answer yet, else a broken connection; the upstream request is cut off. */
export function end(exchange: Exchange, refusal: Refusal): void {
  if (exchange.res.writableFinished) return
  if (exchange.sender === undefined) answer(exchange, refusal)
  else exchange.sender.end(refusal)
}
