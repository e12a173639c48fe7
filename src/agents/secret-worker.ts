import { parentPort } from 'node:worker_threads'
import { compareSync, hashSync } from 'bcryptjs'
import { giveWay } from '../priority.ts'

/** With a cost: make a hash. With a hash: compare. */
export type SecretTask =
  | { readonly secret: string; readonly cost: number }
  | { readonly secret: string; readonly hash: string }

export type SecretAnswer = string | boolean

giveWay()
parentPort?.on('message', (task: SecretTask) => {
  const answer = 'cost' in task ? hashSync(task.secret, task.cost) : compareSync(task.secret, task.hash)
  parentPort?.postMessage(answer)
})
