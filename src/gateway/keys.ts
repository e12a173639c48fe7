/** The keys of a configuration, and their fingerprints for other gateways. */
import { createHmac } from 'node:crypto'
import type { Config } from '../config/schema.ts'
import type { Terms } from '../fleet/terms.ts'
import { deriveKey } from '../tokens/key.ts'

/**
 * Keys that seal held requests. The first one seals; the others open what was sealed before a rotation, or before
 * Sealing:Secret was set.
 *
 * @param signing the secret that signs tokens
 */
export function sealingKeys(
  { Security }: Pick<Config, 'Security'>,
  signing: Uint8Array,
): [Uint8Array, ...Uint8Array[]] {
  const key = (secret: Uint8Array | string) => deriveKey(Buffer.from(secret), 'sealing')
  const { Secret, PreviousSecrets } = Security.Sealing
  const former = [...PreviousSecrets, ...Security.AgentAuth.TokenIssuance.PreviousSecrets].map(key)
  return Secret === undefined ? [key(signing), ...former] : [key(Secret), key(signing), ...former]
}

/** Fingerprints of all keys. The secrets are configured: on a database none is generated. */
export function describeKeys(config: Pick<Config, 'Security'>): Pick<Terms, 'signs' | 'accepts'> {
  const { Secret = '', PreviousSecrets } = config.Security.AgentAuth.TokenIssuance
  const tokens = [Secret, ...PreviousSecrets].map(secret => fingerprint('tokens', Buffer.from(secret)))
  const sealing = sealingKeys(config, Buffer.from(Secret)).map(key => fingerprint('sealing', key))
  return { signs: [tokens[0]!, sealing[0]!], accepts: [...tokens, ...sealing] }
}

/** An HMAC under a key that is derived for this purpose alone, so that it reveals nothing about the key. */
function fingerprint(use: 'tokens' | 'sealing', key: Uint8Array): string {
  const derived = deriveKey(key, `fingerprint ${use}`)
  return `${use} ${createHmac('sha256', derived).update('agent-gateway').digest('base64url').slice(0, 22)}`
}
