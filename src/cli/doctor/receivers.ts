/** Whether webhooks, the mail server, Slack and the services of pushes can be reached. Nothing is sent there. */
import type { Socket } from 'node:net'
import { connect as connectSecurely, getCACertificates } from 'node:tls'
import type { Origin } from '../../base/origin.ts'
import { destinationsOf, type ReceiverDestination } from '../../gateway/receivers.ts'
import { type CheckResult, type DoctorParts, failOf, ok } from './result.ts'

export async function receiverFindings(parts: DoctorParts): Promise<readonly CheckResult[]> {
  return Promise.all(destinationsOf(parts.config.HumanInTheLoop).map(destination => reach(destination, parts)))
}

/** Connects, with TLS where the messages have it, and leaves. */
async function reach({ name, origin }: ReceiverDestination, parts: DoctorParts): Promise<CheckResult> {
  const { upstreams, signal, clock } = parts
  const { host, port } = origin
  try {
    const socket = await upstreams.ownRequests.connect(host, port, signal)
    socket.on('error', () => {})
    signal.addEventListener('abort', () => socket.destroy())
    if (origin.scheme === 'https') await secure(socket, origin, upstreams.ca)
    socket.destroy()
    return ok(`${name}: ${host} can be reached`)
  } catch (error) {
    const remedy = 'Check the address, Egress, and the network; "agent-gateway hitl test-message" sends a message.'
    return failOf(`${name} cannot be reached`, error, remedy, clock.now())
  }
}

function secure(socket: Socket, { host, address }: Origin, ca: string | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const trusted = ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }
  const named = address === undefined ? { host, servername: host } : { host: address }
  const secured = connectSecurely({ socket, ...named, ...trusted }, resolve)
  secured.once('error', reject)
  secured.once('close', () => reject(new Error(`${host} ended the handshake`)))
  return promise
}
