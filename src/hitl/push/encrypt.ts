/** Encrypts a push for one browser: aes128gcm (RFC 8188) with keys of RFC 8291. */
import { createCipheriv, createECDH, type ECDH, hkdfSync } from 'node:crypto'
import { takeRandom } from '../random.ts'

/** The keys that a browser gives, base64url. */
export interface BrowserKeys {
  readonly p256dh: string
  readonly auth: string
}

/** What is drawn for each message. */
interface Drawn {
  /** With a key of its own. */
  readonly ecdh: ECDH
  readonly salt: Uint8Array
}

const curve = 'prime256v1'
const saltBytes = 16
/** There is one record, and it is shorter. */
const recordSize = 4_096
const lastRecord = 2

function draw(): Drawn {
  const ecdh = createECDH(curve)
  ecdh.generateKeys()
  return { ecdh, salt: takeRandom(saltBytes) }
}

/** The body of the message. Throws for keys that are none. */
export function encryptPush(plain: Uint8Array, keys: BrowserKeys, { ecdh, salt }: Drawn = draw()): Buffer {
  const [browser, auth] = [Buffer.from(keys.p256dh, 'base64url'), Buffer.from(keys.auth, 'base64url')]
  const own = ecdh.getPublicKey()
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), browser, own])
  const secret = derive(ecdh.computeSecret(browser), auth, info, 32)
  const key = derive(secret, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16)
  const nonce = derive(secret, salt, Buffer.from('Content-Encoding: nonce\0'), 12)
  const cipher = createCipheriv('aes-128-gcm', key, nonce)
  const sealed = [cipher.update(plain), cipher.update(Uint8Array.of(lastRecord)), cipher.final(), cipher.getAuthTag()]
  const sizes = Buffer.alloc(5)
  sizes.writeUInt32BE(recordSize)
  sizes.writeUInt8(own.length, 4)
  return Buffer.concat([salt, sizes, own, ...sealed])
}

/** Whether a push can be encrypted for them: a point on the curve, and 16 bytes. */
export function areBrowserKeys(keys: BrowserKeys): boolean {
  if (Buffer.from(keys.auth, 'base64url').length !== saltBytes) return false
  try {
    encryptPush(new Uint8Array(), keys)
    return true
  } catch {
    return false
  }
}

const derive = (secret: Uint8Array, salt: Uint8Array, info: Uint8Array, length: number): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, salt, info, length))
