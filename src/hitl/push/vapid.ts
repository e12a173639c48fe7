/** Who sends a push: a signed token for the push service (RFC 8292). The gateways of a store have one key. */
import { createECDH, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto'
import type { Clock } from '../../runtime/clock.ts'
import type { SubscriptionTable } from '../../storage/subscriptions.ts'
import { seal, unseal } from '../seal.ts'

export interface Vapid {
  /** With which browsers subscribe, base64url: an uncompressed point of P-256. */
  readonly publicKey: string
  /** The field `Authorization` for the push service of the endpoint. */
  authorization(endpoint: string): string
}

export interface VapidOptions {
  readonly store: Pick<SubscriptionTable, 'key'>
  readonly clock: Pick<Clock, 'now'>
  readonly sealingKeys: readonly [Uint8Array, ...Uint8Array[]]
  /** A URL of who sends: push services ask there when something is wrong. */
  readonly contact: string
  readonly report: (what: string, error: unknown) => void
}

const label = 'push-key'
/** Push services allow a day. */
const validSeconds = 12 * 3_600

/** Reads the key of the store, and makes it when there is none. */
export async function openVapid({ store, sealingKeys, report, ...options }: VapidOptions): Promise<Vapid> {
  const made = () => seal(sealingKeys[0], label, Buffer.from(JSON.stringify(makeKey())))
  const stored = await store.key(made())
  let opened = unseal(sealingKeys, label, stored)
  if (opened === undefined) {
    report('the key of Web Push cannot be opened: people must switch pushes on again', new Error('another sealing key'))
    opened = unseal(sealingKeys, label, await store.key(made(), stored))
  }
  if (opened === undefined) throw new Error('cannot happen: another gateway has stored a key under another sealing key')
  return vapidOf(JSON.parse(String(opened)), options)
}

/** @param jwk a private key of P-256 */
export function vapidOf(
  jwk: ReturnType<typeof makeKey>,
  { clock, contact }: Pick<VapidOptions, 'clock' | 'contact'>,
): Vapid {
  const key = createPrivateKey({ key: jwk, format: 'jwk' })
  const ecdh = createECDH('prime256v1')
  ecdh.setPrivateKey(jwk.d ?? '', 'base64url')
  const publicKey = ecdh.getPublicKey('base64url')
  return {
    publicKey,
    authorization(endpoint) {
      const exp = Math.floor(clock.now() / 1_000) + validSeconds
      const claims = { aud: new URL(endpoint).origin, exp, sub: contact }
      const signed = [{ typ: 'JWT', alg: 'ES256' }, claims].map(encode).join('.')
      // ES256 has the two numbers of a signature as they are (RFC 7518 section 3.4).
      const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
      return `vapid t=${signed}.${signature.toString('base64url')}, k=${publicKey}`
    },
  }
}

const makeKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')
