import { getCACertificates } from 'node:tls'
import { buildConnector } from 'undici'
import { unmapped } from './address.ts'

export interface DialSettings {
  readonly connectTimeoutMs: number
  /** PEM text of certificate authorities trusted beside the built-in ones. */
  readonly ca?: string | undefined
}

/** One connect that undici asks for. */
export interface Attempt {
  readonly options: buildConnector.Options
  readonly callback: buildConnector.Callback
  /** Offer HTTP/2, and prefer it. */
  readonly http2: boolean
  /** Told of the address that the connection really has, and of the protocol that TLS agreed on. */
  readonly onConnected: (address: string, protocol: unknown) => void
}

/** Connects to one of the checked addresses, in order. */
export type Dial = (addresses: readonly string[], attempt: Attempt) => void

/** Connections to addresses that egress has checked: what is connected to is compared with what was checked. */
export function createDial(settings: DialSettings): Dial {
  const options = {
    timeout: settings.connectTimeoutMs,
    ...(settings.ca === undefined ? {} : { ca: [...getCACertificates('default'), settings.ca] }),
  }
  const http1 = buildConnector({ ...options, allowH2: false })
  const http2 = buildConnector({ ...options, allowH2: true, preferH2: true })
  const dial = (addresses: readonly string[], attempt: Attempt, index: number): void => {
    const address = addresses[index] as string
    const connect = attempt.http2 ? http2 : http1
    connect({ ...attempt.options, hostname: address }, (...[error, socket]) => {
      if (error !== null) {
        if (index + 1 < addresses.length) dial(addresses, attempt, index + 1)
        else attempt.callback(error, null)
      } else if (sameAddress(socket.remoteAddress, address)) {
        attempt.onConnected(address, 'alpnProtocol' in socket ? socket.alpnProtocol : undefined)
        attempt.callback(null, socket)
      } else {
        socket.destroy()
        attempt.callback(new WrongAddressError(), null)
      }
    })
  }
  return (addresses, attempt) => dial(addresses, attempt, 0)
}

/** The socket is connected to another address than the one that was checked. */
class WrongAddressError extends Error {
  override readonly name = 'WrongAddressError'
}

function sameAddress(actual: string | undefined, checked: string): boolean {
  return actual !== undefined && unmapped(actual) === unmapped(checked)
}
