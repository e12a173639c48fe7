import { literalAddress } from './address.ts'

/** Scheme, host and port of an upstream: the key of connections and of the circuit. */
export interface Origin {
  readonly scheme: 'http' | 'https'
  /** Lower case; IPv6 in brackets. */
  readonly host: string
  readonly port: number
  /** The address that the host is, without brackets; undefined for a name. */
  readonly address: string | undefined
  /** `https://api.example.com`, with the port unless it is the scheme's own. */
  readonly key: string
}

export function createOrigin(scheme: 'http' | 'https', host: string, port: number): Origin {
  const usual = port === (scheme === 'http' ? 80 : 443)
  return Object.freeze({
    scheme,
    host,
    port,
    address: literalAddress(host),
    key: `${scheme}://${host}${usual ? '' : `:${port}`}`,
  })
}
