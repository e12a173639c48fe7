import { type Refusal, refuse } from '../../base/refusals.ts'
import { ConnectTunnel } from '../../http/own-urls.ts'
import { keyIdOf } from '../../tokens/agent-key.ts'
import type { Admitted, StepResult } from '../exchange.ts'
import type { Parts } from '../parts.ts'
import { takeSlot } from './admit.ts'

/**
 * Opens a tunnel for a CONNECT. The requests in it pass all steps. A CONNECT to a host that is not opened passes the other steps
 * itself.
 */
export function intercept(exchange: Admitted, parts: Parts): StepResult {
  if (exchange.addressing.road !== 'tunnel') return undefined
  const { agent, claims, token, target, requestId, socket, res } = exchange
  const { interception } = parts
  if (interception === undefined) throw new Error('cannot happen: a tunnel without a forward proxy')
  if (!interception.hosts.opens(target.origin)) return takeSlot(exchange, parts)
  const tunnel = new ConnectTunnel({ id: requestId, agentId: agent.id, token, origin: target.origin })
  if (!interception.permits(tunnel.host)) return notPermitted
  const close = (): void => (tunnel.connection ?? socket).destroySoon()
  if (!parts.tunnels.open({ agentId: agent.id, keyId: keyIdOf(claims), socket, close })) {
    return refuseTunnel(exchange, parts)
  }
  res.detachSocket(socket)
  noteUnused(exchange, tunnel, parts)
  interception.open(socket, tunnel)
  return 'handed over'
}

/** A tunnel is known by its requests. One that closes without any is noted by itself. */
function noteUnused({ req, claims, startedAt, socket }: Admitted, tunnel: ConnectTunnel, parts: Parts): void {
  // No more of the exchange than this is kept: an idle tunnel must not take more memory than it needs.
  const caller = { keyId: keyIdOf(claims), clientIp: parts.clientIpOf(socket, req.rawHeaders) }
  socket.once('close', () => {
    const { id, agentId, origin, failure: cause } = tunnel
    if (!tunnel.isUnused) return
    const ms = parts.clock.steady() - startedAt
    for (const listener of parts.ends) listener.unused?.({ id, agentId, ...caller, origin, cause, ms })
  })
}

const notPermitted = refuse('egress_denied', undefined, { cause: 'the CA may not issue certificates for this host' })

function refuseTunnel({ agent, requestId }: Admitted, { bounds }: Parts): Refusal {
  bounds.reached('tunnels', agent.id, requestId)
  return refuse('too_many_tunnels')
}
