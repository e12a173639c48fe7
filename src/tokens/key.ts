import { hkdfSync, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { StartupError } from '../base/refusals.ts'
import { secretProblem } from '../config/entropy.ts'
import { readPrivateFile, writePrivateFile } from '../runtime/private-file.ts'

type CryptoKey = import('node:crypto').webcrypto.CryptoKey

const settingName = 'Security:AgentAuth:TokenIssuance:Secret'

export interface SigningKeys {
  /** Signs and verifies. */
  readonly current: CryptoKey
  /** Current first, then the previous ones: each verifies. */
  readonly verifying: readonly CryptoKey[]
  /** Bytes of the current secret, to derive other keys from. */
  readonly secret: Uint8Array
  /**
   * Makes all tokens of another epoch void: keys are derived with this text, or are the secrets themselves without one.
   * `verifying` is another list then.
   */
  use(epoch: string | undefined): Promise<void>
}

export interface SigningKeyOptions {
  /** Whether signing.key may be made; false where it is lost when it is not there. */
  readonly mayMake?: boolean
  /** Security:AgentAuth:TokenIssuance. */
  readonly Secret: string | undefined
  readonly PreviousSecrets: readonly string[]
}

/**
 * The secret that signs internal tokens: the configured one, or one generated once into
 * `<dataDirectory>/signing.key`. Rejects with StartupError, which never contains the value, when it is weak.
 */
export async function openSigningKeys(options: SigningKeyOptions, dataDirectory: string): Promise<SigningKeys> {
  const text = options.Secret ?? (await storedSecret(join(dataDirectory, 'signing.key'), options.mayMake ?? true))
  const secret = strongSecret(text, settingName)
  const previous = options.PreviousSecrets.map(old =>
    strongSecret(old, settingName.replace(/Secret$/, 'PreviousSecrets')),
  )
  const keysOf = (epoch: string | undefined) =>
    Promise.all([secret, ...previous].map(one => importKey(epoch === undefined ? one : derived(one, epoch))))
  let asked: string | undefined
  const keys = {
    secret,
    // No getter: each request reads it.
    verifying: await keysOf(undefined),
    get current() {
      return keys.verifying[0]!
    },
    async use(epoch: string | undefined) {
      asked = epoch
      const verifying = await keysOf(epoch)
      // Another one came meanwhile.
      if (asked === epoch) keys.verifying = verifying
    },
  }
  return keys
}

const derived = (secret: Uint8Array, epoch: string) => Buffer.from(deriveKey(secret, `tokens ${epoch}`))

/** 32 bytes for one purpose (`info`), from which neither the secret nor the keys of other purposes follow (RFC 5869). */
export function deriveKey(secret: Uint8Array, info: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, new Uint8Array(0), `agent-gateway ${info}`, 32))
}

async function storedSecret(path: string, mayMake: boolean): Promise<string> {
  const found = await readPrivateFile(path)
  if (found !== undefined) return found.trim()
  if (!mayMake) throw new StartupError(lostKey(path))
  const made = randomBytes(48).toString('base64')
  if (await writePrivateFile(path, `${made}\n`, false)) return made
  // Another process was first.
  return storedSecret(path, mayMake)
}

const lostKey = (path: string): string =>
  `${path} is missing, but the database beside it was used with it. Restore it from a backup. If it is lost, write 32 ` +
  `random bytes or more to it (openssl rand -base64 48 > ${path}; chmod 600 ${path}): all tokens become void, and ` +
  'requests that are held for review can no longer be sent.'

function strongSecret(text: string, name: string): Buffer<ArrayBuffer> {
  const problem = secretProblem(text)
  if (problem !== undefined) throw new StartupError(`${name}: ${problem}`)
  return Buffer.from(text)
}

// Importing once makes signing and verifying three times faster than with raw bytes.
function importKey(secret: Buffer<ArrayBuffer>): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify'])
}
