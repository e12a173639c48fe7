/** Tokens of Vault and OpenBao: https://developer.hashicorp.com/vault/api-docs/auth */
import { parseJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'
import type { CredentialSetting } from '../config/credentials.ts'
import type { OwnAnswer } from '../upstream/own-requests.ts'
import { limitOf, type Obtain, type Obtained, type SourceParts, secretOf, sendable } from './obtain.ts'
import { CredentialError } from './state.ts'

/** Life of a token that does not end, such as a root token: it is looked at again, milliseconds. */
const endlessMs = 3_600_000

/** Renews the token that there is, else logs in. A token is revoked when a newer one has replaced it, and at the end. */
export const vaultToken: Obtain = async (setting, parts, signal) => {
  const { current } = parts
  const ask = (path: string, body: object, token?: string) => askVault(setting, parts, { path, body, token, signal })
  if (current !== undefined) {
    const renewed = await ask('/v1/auth/token/renew-self', {}, current)
    const again = renewed.status === 200 ? tokenIn(renewed, setting) : undefined
    // A token near its greatest age gets less and less.
    if (again !== undefined && again.lifetimeMs >= leastRenewedMs) return again
  }
  const answer = await ask(new URL(setting.TokenUrl ?? '').pathname, await loginOf(setting, parts))
  if (answer.status !== 200) throw new CredentialError('failing', `Vault answers with status ${answer.status}.`)
  const token = tokenIn(answer, setting)
  // With it end the leases of what was read with it.
  parts.givenBack?.keep(`token of ${setting.Name}`, given =>
    askVault(setting, parts, { path: '/v1/auth/token/revoke-self', body: {}, token: token.value, signal: given }),
  )
  return token
}

/** A renewal that gives less than this is not worth having, milliseconds. */
const leastRenewedMs = 120_000

/** AppRole wants two ids, the others a role and the token of the workload. */
async function loginOf(setting: CredentialSetting, { secrets }: SourceParts): Promise<object> {
  const secret = await secrets.read(secretOf(setting))
  const { ClientId, Subject } = setting
  return ClientId === undefined ? { role: Subject, jwt: secret } : { role_id: ClientId, secret_id: secret }
}

interface VaultRequest {
  readonly path: string
  readonly body: object
  readonly token: string | undefined
  readonly signal: AbortSignal
}

function askVault(
  setting: CredentialSetting,
  { ownRequests }: SourceParts,
  { path, body, token, signal }: VaultRequest,
): Promise<OwnAnswer> {
  const headers = ['Content-Type', 'application/json', 'Accept-Encoding', 'identity']
  if (token !== undefined) headers.push('X-Vault-Token', token)
  const message = { url: new URL(path, setting.TokenUrl).href, headers, body: JSON.stringify(body) }
  return ownRequests.ask(message, signal, limitOf(setting))
}

/** @throws CredentialError */
function tokenIn({ body }: OwnAnswer, setting: CredentialSetting): Obtained {
  const found = parseJson(Buffer.from(body).toString())
  const auth = isObject(found) && isObject(found['auth']) ? found['auth'] : {}
  const { client_token: token, lease_duration: seconds } = auth
  if (typeof token !== 'string' || typeof seconds !== 'number')
    throw new CredentialError('failing', 'The answer of Vault has no token.')
  return { value: sendable(token, setting), lifetimeMs: seconds > 0 ? seconds * 1_000 : endlessMs }
}
