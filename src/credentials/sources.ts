import type { CredentialSetting } from '../config/credentials.ts'
import { awsKeys } from './aws.ts'
import { type Obtain, secretOf, sendable } from './obtain.ts'

/** Types whose tokens a person grants, and the store keeps. */
export type StoredType = 'RefreshToken' | 'Connect'

/** How the value of each type is had that is not kept in the store. What speaks with token servers is loaded when the first one is needed. */
export const sources: Readonly<Record<Exclude<CredentialSetting['Type'], StoredType>, Obtain>> = {
  Value: async (setting, { secrets }) => ({
    value: sendable(await secrets.read(secretOf(setting)), setting),
    lifetimeMs: Number.POSITIVE_INFINITY,
  }),
  async Basic(setting, { secrets }) {
    const pair = `${setting.Subject}:${await secrets.read(secretOf(setting))}`
    return { value: `Basic ${Buffer.from(pair).toString('base64')}`, lifetimeMs: Number.POSITIVE_INFINITY }
  },
  ClientCredentials: async (...asked) => (await import('./token-requests.ts')).clientCredentials(...asked),
  JwtBearer: async (...asked) => (await import('./token-requests.ts')).jwtBearer(...asked),
  TokenExchange: async (...asked) => (await import('./token-requests.ts')).tokenExchange(...asked),
  AgentTokenExchange: async (...asked) => (await import('./agent-exchange.ts')).agentTokenExchange(...asked),
  IdJag: async (...asked) => (await import('./agent-exchange.ts')).idJag(...asked),
  async Aws(setting, parts, signal) {
    if (setting.Subject !== undefined) return (await import('./aws-role.ts')).assumeRole(setting, parts, signal)
    return awsKeys(await parts.secrets.read(secretOf(setting)), setting, parts.clock.now())
  },
  Vault: async (...asked) => (await import('./vault.ts')).vaultToken(...asked),
  GitHubApp: async (...asked) => (await import('./token-requests.ts')).gitHubApp(...asked),
}
