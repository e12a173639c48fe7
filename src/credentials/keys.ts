/** Private keys with which the gateway proves to token servers who it is. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { parseJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'
import type { CredentialSetting } from '../config/credentials.ts'
import type { AssertionKey } from '../tokens/assertion.ts'
import { CredentialError } from './state.ts'

/** A key, and whose it is. */
export interface Account extends AssertionKey {
  readonly issuer: string | undefined
  readonly tokenUrl: string | undefined
  readonly isGoogle: boolean
}

/** The key of a service account as Google writes it, or a key alone. */
export function accountOf(secret: string, setting: CredentialSetting): Account {
  if (!secret.trimStart().startsWith('{')) return ownAccount(privateKey(secret, setting), undefined, setting)
  const found = parseJson(secret)
  const {
    private_key: pem,
    private_key_id: keyId,
    client_email: email,
    token_uri: tokenUrl,
    kid,
  }: Readonly<Record<string, unknown>> = isObject(found) ? found : {}
  if (typeof pem !== 'string') return ownAccount(privateKey(secret, setting), textOrNothing(kid), setting)
  const issuer = setting.ClientId ?? textOrNothing(email)
  return {
    key: privateKey(pem, setting),
    ...{ keyId: textOrNothing(keyId), issuer, tokenUrl: textOrNothing(tokenUrl), isGoogle: true },
  }
}

const ownAccount = (key: KeyObject, keyId: string | undefined, { ClientId }: CredentialSetting): Account => ({
  ...{ key, keyId, issuer: ClientId, tokenUrl: undefined, isGoogle: false },
})

const textOrNothing = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** A private key as PEM or as a JSON Web Key. */
export function privateKey(text: string, { Name }: CredentialSetting): KeyObject {
  try {
    return text.trimStart().startsWith('{')
      ? createPrivateKey({ key: JSON.parse(text), format: 'jwk' })
      : createPrivateKey(text)
  } catch {
    throw new CredentialError('failing', `The secret of ${Name} must be a private key: PEM, or a JSON Web Key.`)
  }
}
