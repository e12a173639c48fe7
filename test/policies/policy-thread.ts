/** Long work on policies waits its turn, and ends: when it takes too long, and when the gateway closes. */
import t from 'tap'
import { createPolicyThread } from '../../src/policies/policy-thread.ts'

const stays = new AbortController().signal
const lint = { name: 'p', default: 'Deny', rules: [] }

t.test('more pieces of work than may wait are refused, and after the end each is', async t => {
  const thread = createPolicyThread(error => t.fail(error.message))
  t.teardown(() => thread.close())
  const held = Promise.withResolvers<string>()
  const waiting = Array.from({ length: 8 }, () => thread.run(() => held.promise, stays))
  t.match(await thread.run(() => held.promise, stays), { refusal: 'busy' })
  held.resolve('done')
  t.strictSame(
    await Promise.all(waiting),
    Array.from({ length: 8 }, () => 'done'),
  )
  await thread.close()
  t.match(await thread.run(async () => 'never', stays), { refusal: 'draining' })
})

t.test('a piece that takes too long is ended, the next one gets a new thread', async t => {
  const thread = createPolicyThread(error => t.fail(error.message), 1)
  t.teardown(() => thread.close())
  // No thread starts within a millisecond.
  t.match(await thread.run(calls => calls.call('lint', [lint, {}, 0]), stays), { refusal: 'busy', detail: /a minute/ })
  const failed = thread.run(async () => {
    throw new TypeError('a fault of the work')
  }, stays)
  await t.rejects(failed, /a fault of the work/)
})

t.test('work is done in a thread that starts when it is needed', async t => {
  const thread = createPolicyThread(error => t.fail(error.message))
  t.teardown(() => thread.close())
  t.strictSame(await thread.run(calls => calls.call('lint', [lint, {}, 0]), stays), [])
})

t.test('work that nobody waits for ends, or never begins, and the next one is done', async t => {
  const thread = createPolicyThread(error => t.fail(error.message))
  t.teardown(() => thread.close())
  const leaving = new AbortController()
  const begun = Promise.withResolvers<void>()
  const rules = Array.from({ length: 1_000 }, (_, at) => ({
    name: `r${at}`,
    effect: 'Allow',
    conditions: [{ field: 'input.path', operator: 'pathMatches', value: `/a/${at}/{id}` }],
  }))
  const running = thread.run(calls => {
    begun.resolve()
    return calls.call('lint', [{ ...lint, rules }, {}, 0])
  }, leaving.signal)
  let isCalled = false
  const queued = thread.run(async () => {
    isCalled = true
  }, leaving.signal)
  const next = thread.run(calls => calls.call('lint', [lint, {}, 0]), stays)
  await begun.promise
  leaving.abort()
  t.match(await running, { refusal: 'busy', detail: 'The caller left.' })
  t.match(await queued, { refusal: 'busy' })
  t.notOk(isCalled)
  t.strictSame(await next, [])
})
