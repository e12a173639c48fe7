/** Who the gateway is at the server of a credential: what a registration says, and what the document says that the gateway serves. */
import type { CredentialSetting } from '../config/credentials.ts'

/** Where the server of a credential sends people back to: one address for each, so that no server answers for another one. */
export const redirectUriOf = (name: string, origin: string): string => `${origin}/console/connected/${name}`

/** RFC 7591 section 2. */
export const clientMetadata = (redirectUri: string, authentication: string) => ({
  ...{ client_name: 'agent-gateway', redirect_uris: [redirectUri], response_types: ['code'] },
  ...{ grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: authentication },
  application_type: redirectUri.startsWith('http://127.0.0.1') ? 'native' : 'web',
})

/** Address of the document, which is the id of the client; undefined where the gateway is another one. Servers read it over TLS alone. */
export function documentUrlOf(
  { Name, Type, ClientId }: CredentialSetting,
  origin: string | undefined,
): string | undefined {
  const isServed = Type === 'Connect' && ClientId === undefined && origin?.startsWith('https://') === true
  return isServed ? `${origin}/oauth-clients/${Name}` : undefined
}

/** For the server of a credential (draft-ietf-oauth-client-id-metadata-document section 4). */
export function clientDocument(setting: CredentialSetting, origin: string | undefined): object | undefined {
  const id = documentUrlOf(setting, origin)
  if (id === undefined || origin === undefined) return undefined
  return { client_id: id, ...clientMetadata(redirectUriOf(setting.Name ?? '', origin), 'none') }
}
