/** Whether webhooks and the mail server can be reached. Nothing is sent there. */
import { isIP, type Socket } from 'node:net'
import { connect as connectSecurely, getCACertificates } from 'node:tls'
import { asError } from '../../base/as-error.ts'
import { type CheckResult, type DoctorParts, fail, ok } from './result.ts'

interface ReceiverAddress {
  /** For people: URLs of webhooks often hold a key. */
  readonly name: string
  readonly host: string
  readonly port: number
  readonly isSecure: boolean
}

export async function receiverFindings(parts: DoctorParts): Promise<readonly CheckResult[]> {
  const { Webhooks, Email } = parts.config.HumanInTheLoop
  const hooks = Webhooks.flatMap(({ Url }, index) =>
    Url === undefined ? [] : [destinationOf(`webhook ${index}`, new URL(Url))],
  )
  const mail = Email.Host && { name: 'e-mail', host: Email.Host, port: Email.Port, isSecure: Email.Port === 465 }
  return Promise.all([...hooks, ...(mail ? [mail] : [])].map(destination => reach(destination, parts)))
}

function destinationOf(name: string, { protocol, hostname, port }: URL): ReceiverAddress {
  const isSecure = protocol === 'https:'
  return { name, host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (isSecure ? 443 : 80), isSecure }
}

/** Connects, with TLS where the messages have it, and leaves. */
async function reach(destination: ReceiverAddress, { upstreams, signal }: DoctorParts): Promise<CheckResult> {
  const { name, host, port, isSecure } = destination
  try {
    const socket = await upstreams.ownRequests.connect(host, port, signal)
    socket.on('error', () => {})
    signal.addEventListener('abort', () => socket.destroy())
    if (isSecure) await secure(socket, host, upstreams.ca)
    socket.destroy()
    return ok(`${name}: ${host} can be reached`)
  } catch (error) {
    const remedy = 'Check the address, Egress, and the network; "agent-gateway hitl test-message" sends a message.'
    return fail(`${name} cannot be reached: ${asError(error).message}`, remedy)
  }
}

function secure(socket: Socket, host: string, ca: string | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const trusted = ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }
  const named = isIP(host) === 0 ? { servername: host } : {}
  const secured = connectSecurely({ socket, host, ...named, ...trusted }, resolve)
  secured.once('error', reject)
  secured.once('close', () => reject(new Error(`${host} ended the handshake`)))
  return promise
}
