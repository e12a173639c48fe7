import type { AuthorizationServer } from 'oauth4webapi'
import type { CredentialSetting } from '../config/credentials.ts'
import type { Clock } from '../runtime/clock.ts'
import type { OwnRequests } from '../upstream/own-requests.ts'
import type { GivenBack } from './given-back.ts'
import type { Secrets } from './secrets.ts'
import { CredentialError } from './state.ts'

/** A value, and how long it may be sent from the moment at which it was asked for, milliseconds. */
export interface Obtained {
  readonly value: string
  readonly lifetimeMs: number
  /** Scopes that a person can still grant. Absent: none, or nobody can. */
  readonly grantable?: readonly string[]
  /** False once it was taken back, or replaced. Absent: nobody does. */
  readonly isCurrent?: () => boolean
}

export interface SourceParts {
  readonly secrets: Pick<Secrets, 'read'>
  readonly ownRequests: Pick<OwnRequests, 'ask'>
  /** By issuer: what its document says, once it was read. */
  readonly servers: Map<string, AuthorizationServer>
  readonly clock: Pick<Clock, 'now'>
  /** Where what ends with the gateway is kept; absent: it ends by itself. */
  readonly givenBack?: Pick<GivenBack, 'keep'>
  /** The value that there is, while it may be sent and no upstream has refused it. */
  readonly current?: string | undefined
  /** The token of the agent, for types that are had for it. */
  readonly subjectToken?: string
}

/** Rejects with a CredentialError, or another error whose message has no value. */
export type Obtain = (setting: CredentialSetting, parts: SourceParts, signal: AbortSignal) => Promise<Obtained>

/** Name of the secret; config/credentials.ts checks that it is there. */
export function secretOf({ Secret }: CredentialSetting): string {
  if (Secret === undefined) throw new Error('cannot happen: a credential without a secret')
  return Secret
}

/** How long a server may take, milliseconds. */
export const limitOf = ({ TimeoutSeconds }: Pick<CredentialSetting, 'TimeoutSeconds'>): number => TimeoutSeconds * 1_000

/** RFC 9110 section 5.5, without what is obsolete. */
const fieldValue = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

export const isSendable = (text: string): boolean => fieldValue.test(text)

export function sendable(text: string, { Name }: CredentialSetting): string {
  if (isSendable(text)) return text
  throw new CredentialError('failing', `The value of ${Name} must be one line of printable ASCII characters.`)
}
