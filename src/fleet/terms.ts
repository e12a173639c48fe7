/** What gateways on one database must agree on, so that each can take what the others have signed and sealed. */
import { StartupError } from '../base/refusals.ts'

/** What a gateway publishes of it. Fingerprints begin with what the key is for: `tokens ...` or `sealing ...`. */
export interface Terms {
  readonly name: string
  /** How long it serves without the database, milliseconds. */
  readonly fenceMs: number
  /** Fingerprints of the keys that it signs and seals with. */
  readonly signs: readonly string[]
  /** Fingerprints of the keys whose signatures it accepts, and whose seals it opens. */
  readonly accepts: readonly string[]
}

/** Two gateways cannot serve together. */
export class DisagreementError extends StartupError {
  /** UUID of the other one. */
  readonly other: string

  constructor(message: string, other: string) {
    super(message)
    this.other = other
  }
}

/** Why two gateways cannot serve together, and what to do; undefined when they can. */
export function disagreement(here: Terms, other: Terms): string | undefined {
  if (here.fenceMs !== other.fenceMs) {
    return `Fleet:FenceAfterSeconds is ${here.fenceMs / 1_000} here and ${other.fenceMs / 1_000} in the gateway ${other.name}. It must be the same in all of them; stop them all to change it.`
  }
  const ours = here.signs.find(print => !other.accepts.includes(print))
  if (ours !== undefined) {
    return `The gateway ${other.name} does not accept ${keyOf(ours)} of this one. Use the same secret, or rotate: first add the new one to PreviousSecrets in every gateway, then make it the Secret in one after the other.`
  }
  const theirs = other.signs.find(print => !here.accepts.includes(print))
  return theirs === undefined
    ? undefined
    : `This gateway does not accept ${keyOf(theirs)} of the gateway ${other.name}. Use the same secret, or add that one to PreviousSecrets here.`
}

const keyOf = (print: string): string =>
  print.startsWith('tokens ') ? 'Security:AgentAuth:TokenIssuance:Secret' : 'Security:Sealing:Secret'
