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
  interception.open(socket, tunnel)
  return 'handed over'
}

const notPermitted = refuse('egress_denied', undefined, { cause: 'the CA may not issue certificates for this host' })

function refuseTunnel({ agent, requestId }: Admitted, { bounds }: Parts): Refusal {
  bounds.reached('tunnels', agent.id, requestId)
  return refuse('too_many_tunnels', undefined, { headers: ['Retry-After', '1'] })
}
