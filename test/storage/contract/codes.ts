import type { Test } from 'tap'
import { actions, type Engine, entry } from './samples.ts'

export function codes(t: Test, engine: Engine): void {
  const code = (hash: string, expiresAt = 2_000) => ({ hash, agentId: `agent of ${hash}`, expiresAt })
  const limits = { now: 1_000, max: 3, maxEach: 2 }

  t.test('a code of the console is taken once, before it is over', async t => {
    const store = await engine(t)
    for (const hash of ['one', 'other']) await store.codes.keep(code(hash), limits, entry('console.code'))
    t.equal(await store.codes.take('unknown', 1_999), undefined)
    const taken = await Promise.all([1, 2, 3].map(() => store.codes.take('one', 1_999)))
    t.strictSame(
      taken.filter(agent => agent !== undefined),
      ['agent of one'],
    )
    t.equal(await store.codes.take('other', 2_000), undefined)
    t.strictSame(await actions(store), ['console.code', 'console.code'])
  })

  t.test('codes that are over are forgotten, and of too many those that end first', async t => {
    const store = await engine(t)
    const keep = (hash: string, expiresAt: number, now: number) =>
      store.codes.keep(code(hash, expiresAt), { ...limits, now }, entry('console.code'))
    for (const at of [1, 2, 3, 4]) await keep(`c${at}`, 2_000 + at, 1_000)
    t.equal(await store.codes.take('c1', 1_000), undefined)
    t.equal(await store.codes.take('c2', 1_000), 'agent of c2')
    await keep('c5', 3_000, 2_003)
    t.equal(await store.codes.take('c3', 1_000), undefined, 'it was over when another came')
    t.equal(await store.codes.take('c4', 1_000), 'agent of c4')
  })

  t.test('an agent that asks for many codes pushes out its own alone', async t => {
    const store = await engine(t)
    const keep = (hash: string, agentId: string, expiresAt: number) =>
      store.codes.keep({ hash, agentId, expiresAt }, limits, entry('console.code'))
    await keep('other', 'b', 2_000)
    for (const at of [1, 2, 3, 4]) await keep(`own${at}`, 'a', 2_000 + at)
    t.equal(await store.codes.take('other', 1_000), 'b')
    const left = await Promise.all([1, 2, 3, 4].map(at => store.codes.take(`own${at}`, 1_000)))
    t.strictSame(left, [undefined, undefined, 'a', 'a'])
  })
}
