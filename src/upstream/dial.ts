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
  /** Told of the address that the connection really has. */
  readonly onAddress: (address: string) => void
}

/** Connects to one of the checked addresses, in order. */
export type Dial = (addresses: readonly string[], attempt: Attempt) => void

/** Connections to addresses that egress has checked: what is connected to is compared with what was checked. */
export function createDial(settings: DialSettings): Dial {
  const connect = buildConnector({
    timeout: settings.connectTimeoutMs,
    allowH2: false,
    ...(settings.ca === undefined ? {} : { ca: [...getCACertificates('default'), settings.ca] }),
  })
  const dial = (addresses: readonly string[], attempt: Attempt, index: number): void => {
    const address = addresses[index] as string
    connect({ ...attempt.options, hostname: address }, (...[error, socket]) => {
      if (error !== null) {
        if (index + 1 < addresses.length) dial(addresses, attempt, index + 1)
        else attempt.callback(error, null)
      } else if (sameAddress(socket.remoteAddress, address)) {
        attempt.onAddress(address)
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
