/** The thread that makes and compares hashes of secrets. */
import { parentPort } from 'node:worker_threads'
import { compareSync, hashSync } from 'bcryptjs'
import { openLink } from '../runtime/link.ts'
import { giveWay } from '../runtime/priority.ts'

export interface SecretCalls {
  hash(secret: string, cost: number): Promise<string>
  verify(secret: string, against: Comparison): Promise<boolean>
}

export interface Comparison {
  /** Undefined for an agent that is not known. */
  readonly hash: string | undefined
  /** The cost that `hash` was made with. */
  readonly madeWith: number
  /** The answer takes the time of this cost, which is no lower. */
  readonly cost: number
}

const port = parentPort
if (port === null) throw new Error('cannot happen: secret-worker.ts runs as a worker only')

giveWay()
openLink<SecretCalls, object>(port, {
  hash: hashSync,
  verify,
})

/**
 * Each cost takes twice the time of the one below, so the costs from the hash's own to the one before `cost` add up to
 * the missing time. Without them a hash made before the cost was raised would show by its time that the agent is known.
 */
function verify(secret: string, { hash, madeWith, cost }: Comparison): boolean {
  const matches = compareSync(secret, hash ?? nobodysHash(madeWith))
  for (let missing = madeWith; missing < cost; missing++) compareSync(secret, nobodysHash(missing))
  return matches && hash !== undefined
}

/** Any salt and digest do: comparing takes as long as with a real hash. */
function nobodysHash(cost: number): string {
  return `$2b$${String(cost).padStart(2, '0')}$${'abcdefghijklmnopqrstuu'}${'v'.repeat(31)}`
}
