/** What the gateway adds for a credential at a moment. Structured clone carries it to the other threads. */
export interface CredentialState {
  /** Its key as a text (`keyText`): the name, and whose account it is. */
  readonly name: string
  /** Another number for each value. */
  readonly version: number
  /** What is added, without the prefix of the entry in `Upstreams`; undefined until there is one. */
  readonly value: string | undefined
  /** Steady milliseconds until when the value may be sent; Infinity when it does not end. */
  readonly freshUntil: number
  /** Steady milliseconds from which a new value is fetched while the old one is sent. */
  readonly renewAt: number
  /** Why there is no newer value; undefined when the last attempt succeeded. */
  readonly problem: CredentialProblem | undefined
  /** Scopes that a person can still grant; absent where nobody can. */
  readonly grantable?: readonly string[] | undefined
  /** Its account is gone for good, and need not be remembered. */
  readonly isGone?: boolean
}

/** `failing`: another attempt may succeed. `needed`: a person must do something first. */
export interface CredentialProblem {
  readonly kind: 'failing' | 'needed'
  /** For people. Never a value. */
  readonly text: string
}

/** A value of a credential that may be sent. */
export interface FreshCredential extends CredentialState {
  readonly value: string
}

export const isFresh = (state: CredentialState | undefined, now: number): state is FreshCredential =>
  state?.value !== undefined && now < state.freshUntil

/** There is no value that may be sent, and it says why to people. It never has a value in its message. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError'
  readonly kind: CredentialProblem['kind']
  /** What the server calls it (RFC 6749 section 5.2), if it said so. */
  readonly code: string | undefined

  constructor(kind: CredentialProblem['kind'], message: string, code?: string) {
    super(message)
    this.kind = kind
    this.code = code
  }
}
