/** Threats T12, T27, T28 of SECURITY.md. */
import { setTimeout } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import { createSecretHasher, generateSecret, secretProblem } from '../../src/agents/secret.ts'
import { isRefusal } from '../../src/base/refusals.ts'
import { cpuRatio, isAlike } from '../fixtures/cpu-time.ts'

type Options = Parameters<typeof createSecretHasher>[0]

function openHasher(t: Tap, options: Partial<Options> = {}) {
  const hasher = createSecretHasher({ cost: 4, queueLength: 32, ...options })
  t.teardown(() => hasher.close())
  return hasher
}
type Tap = { teardown(handler: () => Promise<void>): unknown }

async function hashOf(hasher: ReturnType<typeof createSecretHasher>, secret: string): Promise<string> {
  const hash = await hasher.hash(secret)
  if (isRefusal(hash)) throw new TypeError(hash.detail)
  return hash
}

t.test('secrets are 1 to 72 bytes of well-formed UTF-8 without NUL', async t => {
  for (const good of ['a', 'ü'.repeat(36), '😀'.repeat(18), ' ', 'a'.repeat(72), generateSecret()]) {
    t.equal(secretProblem(good), undefined)
  }
  for (const bad of ['', 'a'.repeat(73), `${'ü'.repeat(36)}a`, '\0', 'a\0', '\udc00'])
    t.type(secretProblem(bad), 'string')
})

t.test('a hash has the configured cost and fits its own secret only', async t => {
  const hasher = openHasher(t, { cost: 5 })
  const hash = await hashOf(hasher, 'caf\u00e9')
  t.match(hash, /^\$2[aby]\$05\$.{53}$/)
  t.equal(await hasher.verify('caf\u00e9', hash), true)
  t.equal(await hasher.verify('cafe\u0301', hash), false, 'no Unicode normalisation')
  t.equal(await hasher.verify('Caf\u00e9', hash), false)
  t.equal(await hasher.verify('caf\u00e9', undefined), false)
})

t.test('an idle thread ends, and a new one takes the next task', async t => {
  const started: unknown[] = []
  const note = (worker: unknown) => started.push(worker)
  process.on('worker', note)
  t.teardown(() => process.off('worker', note))
  const hasher = openHasher(t, { idleMs: 1 })
  const hash = await hashOf(hasher, 'a')
  while (started.length < 3) {
    await setTimeout(5)
    t.equal(await hasher.verify('a', hash), true)
  }
})

t.test('all 72 bytes count', async t => {
  const hasher = openHasher(t)
  const hash = await hashOf(hasher, `${'a'.repeat(71)}X`)
  t.equal(await hasher.verify(`${'a'.repeat(71)}Y`, hash), false)
})

t.test('more logins than the queue holds are refused at once with Retry-After', async t => {
  const hasher = openHasher(t, { cost: 6, queueLength: 3 })
  const hash = await hashOf(hasher, 's')
  const answers = await Promise.all(Array.from({ length: 10 }, () => hasher.verify('s', hash)))
  t.equal(answers.filter(answer => answer === true).length, 4, 'one under way and three waiting')
  for (const answer of answers.slice(4)) {
    t.match(answer, { refusal: 'too_many_logins', status: 429, headers: ['Retry-After', '1'] })
  }
})

t.test('a registration does not wait behind a flood of logins', async t => {
  const hasher = openHasher(t, { cost: 8, queueLength: 10 })
  const order: string[] = []
  const logins = Array.from({ length: 11 }, () => hasher.verify('s', undefined).then(() => order.push('login')))
  const registration = hasher.hash('s').then(() => order.push('registration'))
  await Promise.all([...logins, registration])
  t.equal(order.indexOf('registration'), 1)
})

t.test('a thread that dies fails the task it had; the others and later ones go on in a new thread', async t => {
  const started: Worker[] = []
  const note = (worker: Worker) => started.push(worker)
  process.on('worker', note)
  t.teardown(() => process.off('worker', note))
  const hasher = openHasher(t, { cost: 12 })
  const killed = hasher.verify('s', undefined)
  const waiting = hasher.hash('s')
  await new Promise(setImmediate)
  await started[0]?.terminate()
  t.match(await killed, { refusal: 'internal', status: 500 })
  t.type(await waiting, 'string')
  t.equal(started.length, 2)
})

t.test('a task that fails answers so, and the thread goes on', async t => {
  const hasher = openHasher(t)
  const hash = await hashOf(hasher, 's')
  t.match(await hasher.verify(5 as unknown as string, hash), { refusal: 'internal', status: 500 })
  t.equal(await hasher.verify('s', hash), true)
})

t.test('after close nothing is accepted, and what waits is refused', async t => {
  const hasher = createSecretHasher({ cost: 8, queueLength: 5 })
  const tasks = [hasher.verify('s', undefined), hasher.verify('s', undefined), hasher.hash('s')]
  await hasher.close()
  for (const task of tasks) t.match(await task, { refusal: 'draining' })
  t.match(await hasher.verify('s', undefined), { refusal: 'draining' })
})

t.test('the event loop turns while secrets are hashed', async t => {
  const hasher = openHasher(t, { cost: 10 })
  let turns = 0
  const hashes = Promise.all([1, 2, 3, 4].map(() => hasher.verify('s', undefined)))
  let isDone = false
  void hashes.then(() => {
    isDone = true
  })
  for (; !isDone; turns++) await new Promise(setImmediate)
  await hashes
  // One that hashes in this thread has a turn for each.
  t.ok(turns > 40, `${turns} turns`)
})

for (const [what, cost] of [
  ['a wrong secret', 8],
  ['a wrong secret whose hash is of a time with a lower cost', 5],
  ['a wrong secret whose hash is of a time with a higher cost', 9],
] as const) {
  t.test(`an unknown agent and ${what} take the same time, within 10 %`, async t => {
    const hash = await hashOf(openHasher(t, { cost }), 'right')
    const hasher = openHasher(t, { cost: 8 })
    t.equal(await hasher.verify('right', hash), true)
    const verify = (against: string | undefined) => () => hasher.verify('wrong', against)
    const ratio = await cpuRatio(verify(undefined), verify(hash))
    t.ok(isAlike(ratio), `ratio ${ratio}`)
  })
}
