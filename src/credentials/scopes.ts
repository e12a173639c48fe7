/**
 * Scopes that an upstream wants beyond those of a credential (RFC 6750 section 3.1). Upstreams are not trusted: what they want is shown
 * to people, who can add what the settings name, and nothing is asked for because an upstream says so.
 */
import type { CredentialSetting } from '../config/credentials.ts'
import { fieldValues } from '../http/headers.ts'

/** What of an account says which scopes it has. */
interface AccountScopes {
  /** What its server granted; null when it did not say. */
  readonly scope: string | null
  /** Scopes of `StepUpScope` that were asked for, too. */
  readonly more?: readonly string[]
}

/** Scopes of one answer, and of all answers to one credential, that people are told of. */
export const maxWantedScopes = 8
/** Characters of a challenge that are read. */
const maxChallenge = 4_096

/** RFC 6749 section 3.3. */
export const isScope = (text: string): boolean => /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/.test(text)

/** @param text scopes with spaces between them */
const scopesIn = (text: string | null | undefined): readonly string[] => text?.split(' ').filter(isScope) ?? []

/** Scopes without which an upstream refuses a request, by the fields of its answer. */
export function wantedScopes(fields: readonly string[]): readonly string[] {
  for (const value of fieldValues(fields, 'www-authenticate')) {
    const bearer = bearerParameters(value.slice(0, maxChallenge))
    if (bearer.get('error') === 'insufficient_scope')
      return [...new Set(scopesIn(bearer.get('scope')))].slice(0, maxWantedScopes)
  }
  return []
}

/** The name of a scheme, or a parameter (RFC 9110 section 11.6.1). */
const challengePart = /[\s,]*([\w-]+)(?:[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+)))?/y

function bearerParameters(challenges: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  let isBearer = false
  challengePart.lastIndex = 0
  for (let part = challengePart.exec(challenges); part !== null; part = challengePart.exec(challenges)) {
    const [, name = '', quoted, plain] = part
    const key = name.toLowerCase()
    const value = quoted?.replace(/\\(.)/g, '$1') ?? plain
    if (value === undefined) isBearer = key === 'bearer'
    else if (isBearer && !found.has(key)) found.set(key, value)
  }
  return found
}

/** What people may be asked for: `Scope`, and of `StepUpScope` what they add. */
const nameable = ({ Scope, StepUpScope }: CredentialSetting): readonly string[] => [
  ...new Set([...scopesIn(Scope), ...scopesIn(StepUpScope)]),
]

/** @param more scopes that a person has chosen: those of the settings count */
export function withScopes(setting: CredentialSetting, more: readonly string[] = []): CredentialSetting {
  const asked = new Set([
    ...scopesIn(setting.Scope),
    ...scopesIn(setting.StepUpScope).filter(one => more.includes(one)),
  ])
  return more.length === 0 ? setting : { ...setting, Scope: [...asked].join(' ') }
}

/** What a renewal asks for: scopes that were not granted would be an error (RFC 6749 section 6). */
export function withGrantedScopes(setting: CredentialSetting, account: AccountScopes | undefined): CredentialSetting {
  const asked = withScopes(setting, account?.more)
  if (account?.scope == null) return asked
  const granted = [...scopesIn(account.scope), 'offline_access']
  return {
    ...asked,
    Scope:
      scopesIn(asked.Scope)
        .filter(one => granted.includes(one))
        .join(' ') || undefined,
  }
}

export function grantableScopes(setting: CredentialSetting, account: AccountScopes | undefined): readonly string[] {
  if (setting.Type !== 'Connect') return []
  const granted = scopesIn(account?.scope ?? withScopes(setting, account?.more).Scope)
  return nameable(setting).filter(one => !granted.includes(one))
}

/** The first of these scopes that people must not be asked for. */
export const foreignScope = (setting: CredentialSetting, scopes: readonly string[]): string | undefined =>
  scopes.find(one => !nameable(setting).includes(one))

/** What a credential does not have of these, first what a person can grant. @param grantable undefined where that is nobody */
export const lackingScopes = (
  setting: CredentialSetting,
  scopes: readonly string[],
  grantable: readonly string[] = [],
): readonly string[] => [
  ...scopes.filter(one => grantable.includes(one)),
  ...scopes.filter(one => foreignScope(setting, [one]) !== undefined),
]
