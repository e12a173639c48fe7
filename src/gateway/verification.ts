import { createVerification, type TrailVerification } from '../audit/verification.ts'
import { leads } from '../fleet/view.ts'
import { seal, unseal } from '../hitl/seal.ts'
import type { Log } from '../log/log.ts'
import { threadWorked } from '../runtime/clock.ts'
import type { Base } from './base.ts'
import type { Identity } from './identity.ts'
import { sealingKeys } from './keys.ts'

export interface OpenVerificationParts extends Pick<Base, 'config' | 'store' | 'clock' | 'fleet'> {
  readonly log: Pick<Log, 'error'>
  readonly identity: { readonly tokens: Pick<Identity['tokens'], 'secret'> }
}

/** Label of the sealed note. */
const label = 'audit pass'

/** The verification of the audit trail, by one gateway of a fleet. */
export function openVerification({
  config,
  store,
  clock,
  fleet,
  log,
  identity,
}: OpenVerificationParts): TrailVerification {
  const keys = sealingKeys(config, identity.tokens.secret)
  return createVerification({
    ...{ store, clock, log },
    leads: () => leads(fleet.view()),
    worked: config.Storage.Provider === 'PostgreSQL' ? threadWorked : undefined,
    seal: {
      close: text => seal(keys[0], label, Buffer.from(text)),
      open: sealed => unseal(keys, label, sealed)?.toString(),
    },
  })
}
