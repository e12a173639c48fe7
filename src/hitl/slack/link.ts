/**
 * Codes by which a person binds an account of Slack: the console shows one to who is signed in there, and the account types it
 * into a form. So both sides are proven.
 */
import { hash, randomInt } from 'node:crypto'
import type { Clock } from '../../runtime/clock.ts'
import { codeLimits } from '../../storage/codes.ts'
import type { IdentityTable } from '../../storage/identities.ts'
import type { AuditEntry, CodeTable } from '../../storage/store.ts'
import type { Person } from '../model.ts'
import { createPace } from './pace.ts'

export type LinkCodes = ReturnType<typeof createLinkCodes>

export interface LinkParts {
  readonly team: string
  readonly store: { readonly codes: CodeTable; readonly identities: Pick<IdentityTable, 'add'> }
  readonly clock: Clock
  readonly reviewerOf: (id: string) => Person | undefined
}

/** Without letters and digits that look alike. */
const letters = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ'
/** Fifty bits: five tries in a minute find none of them. */
const codeLength = 10
const codeMs = 60_000
const triesPerMinute = 5
/** Accounts of one person. */
const maxIdentities = 5

/** No other code of the gateway has this hash. */
const hashOf = (code: string): string => hash('sha256', `slack ${code}`)

export function createLinkCodes({ team, store, clock, reviewerOf }: LinkParts) {
  const takeTry = createPace(clock, triesPerMinute)

  return {
    /** Rejects with StoreError. */
    async open(agentId: string, entry: AuditEntry): Promise<{ readonly code: string; readonly expiresAt: number }> {
      const code = Array.from({ length: codeLength }, () => letters[randomInt(letters.length)]).join('')
      const now = clock.now()
      const expiresAt = now + codeMs
      await store.codes.keep({ hash: hashOf(code), agentId, expiresAt }, { now, ...codeLimits }, entry)
      return { code: `${code.slice(0, codeLength / 2)}-${code.slice(codeLength / 2)}`, expiresAt }
    },
    /** Uses a code up, and says what came of it. */
    async redeem(text: string, user: string): Promise<string> {
      if (!takeTry(user)) return 'Too many tries. Wait a minute.'
      const now = clock.now()
      const agentId = await store.codes.take(hashOf(text.toUpperCase().replaceAll(/[^0-9A-Z]/g, '')), now)
      const person = agentId === undefined ? undefined : reviewerOf(agentId)
      if (person === undefined) return 'This code is not valid. Make a new one in the console.'
      const identity = { provider: 'slack', team, user } as const
      const added = await store.identities.add(person.id, identity, maxIdentities, {
        ...{ at: now, actor: person.id, action: 'agent.identities', subject: person.id, requestId: null },
        details: { via: 'slack', user },
      })
      return outcomes[added]
    },
  }
}

const outcomes = {
  stored: 'Your account is linked. Press the button of a request again.',
  taken: 'This account belongs to another person. An admin can change that.',
  full: 'You have as many accounts as a person may have. An admin can change that.',
  notFound: 'This code is not valid. Make a new one in the console.',
}
