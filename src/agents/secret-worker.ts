import { parentPort } from 'node:worker_threads'
import { compareSync, hashSync } from 'bcryptjs'
import { giveWay } from '../priority.ts'

/** Make a hash, or compare. */
export type SecretTask =
  | { readonly kind: 'hash'; readonly secret: string; readonly cost: number }
  | {
      readonly kind: 'verify'
      readonly secret: string
      /** Undefined for an agent that is not known. */
      readonly hash: string | undefined
      /** That `hash` was made with. */
      readonly madeWith: number
      /** The answer takes the time of this one, which is no lower. */
      readonly cost: number
    }

export type SecretAnswer = string | boolean

giveWay()
parentPort?.on('message', (task: SecretTask) => {
  const answer = task.kind === 'hash' ? hashSync(task.secret, task.cost) : verify(task)
  parentPort?.postMessage(answer)
})

/**
 * Each cost takes twice the time of the one below, so those from the hash's own up to the one before `cost` are what is
 * missing to it: a hash made before the cost was raised would else tell by its time that the agent is known.
 */
function verify({ secret, hash, madeWith, cost }: Extract<SecretTask, { kind: 'verify' }>): boolean {
  const matches = compareSync(secret, hash ?? nobodysHash(madeWith))
  for (let missing = madeWith; missing < cost; missing++) compareSync(secret, nobodysHash(missing))
  return matches && hash !== undefined
}

/** Any salt and digest do: comparing takes as long as with a real hash. */
function nobodysHash(cost: number): string {
  return `$2b$${String(cost).padStart(2, '0')}$${'abcdefghijklmnopqrstuu'}${'v'.repeat(31)}`
}
