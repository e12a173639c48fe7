/** Requests of a thread that wait for credentials. Threat T84. */
import t from 'tap'
import { createCredentialTable } from '../../src/credentials/table.ts'
import { createClock } from '../fixtures/clock.ts'

const none = { name: 'shop', version: 0, value: undefined, freshUntil: 0, renewAt: 0, problem: undefined }

const wanted = { name: 'shop', agentId: 'ada' }

function open(answer: object = {}) {
  const clock = createClock()
  const asked: (number | undefined)[] = []
  const used: string[] = []
  const state = (more: object) => {
    const now = clock.steady()
    return { ...none, version: 1, value: 'v', freshUntil: now + 60_000, renewAt: now + 50_000, ...more }
  }
  const table = createCredentialTable({
    ...{ known: [none], clock },
    onUse: name => used.push(name),
    async need(_, refused) {
      asked.push(refused)
      return state(answer)
    },
  })
  return { table, clock, asked, used, state }
}

t.test('a value that is fresh is ready at once, and renewed ahead once in five seconds', async t => {
  const { table, clock, asked, state } = open()
  t.equal(await table.ready(wanted, false), undefined)
  t.strictSame(asked, [undefined])
  t.equal(table.ready(wanted, false), undefined)
  t.equal(asked.length, 1)
  table.set(state({ renewAt: clock.steady() }))
  for (let times = 0; times < 3; times++) t.equal(table.ready(wanted, false), undefined)
  t.equal(asked.length, 2)
})

t.test('a request that is sent once gets a value that lasts a minute, or a new one', async t => {
  const { table, clock, asked, state } = open()
  table.set(state({ version: 2, freshUntil: clock.steady() + 29_000, renewAt: clock.steady() - 1 }))
  t.equal(table.ready(wanted, false), undefined)
  const short = open({ version: 3, freshUntil: 20_000, renewAt: 0 })
  short.table.set(
    short.state({ version: 2, freshUntil: short.clock.steady() + 29_000, renewAt: short.clock.steady() - 1 }),
  )
  t.match(await short.table.ready(wanted, true), { refusal: 'credential_unavailable' })
  table.set(state({ version: 3, freshUntil: clock.steady() + 30_000, renewAt: clock.steady() - 1 }))
  t.equal(table.ready(wanted, true), undefined)
  table.set(state({ version: 4, freshUntil: clock.steady() + 20_000, renewAt: clock.steady() + 10_000 }))
  t.equal(table.ready(wanted, true), undefined, 'a new one of a short life')
  t.equal(asked.length, 1)
})

t.test('an answer that is late does not bring back a value that was taken back meanwhile', async t => {
  const clock = createClock()
  const { promise, resolve } = Promise.withResolvers<void>()
  const old = { ...none, version: 1, value: 'v', freshUntil: 1e9, renewAt: 1e9 }
  const need = () => promise.then(() => old)
  const table = createCredentialTable({ known: [none], need, onUse: () => {}, clock })
  const waiting = table.ready(wanted, false)
  table.set({ ...none, version: 2, problem: { kind: 'needed', text: 'ask' } })
  resolve()
  t.match(await waiting, { refusal: 'credential_needed' })
  t.equal(table.fresh(wanted), undefined)
})

t.test('so many requests wait and no more, and the agents with most of them make room for others', async t => {
  const clock = createClock()
  const { promise, resolve } = Promise.withResolvers<never>()
  const table = createCredentialTable({ known: [none], need: () => promise, onUse: () => {}, clock })
  const counts = new Map<string, number>()
  const ends: Promise<unknown>[] = []
  const wait = (agentId: string, times: number): void => {
    for (let count = 0; count < times; count++) {
      const one = table.ready({ name: 'shop', agentId }, false)
      if (!(one instanceof Promise)) return void ends.push(Promise.resolve(one))
      const add = (change: number) => counts.set(agentId, (counts.get(agentId) ?? 0) + change)
      add(1)
      ends.push(one.finally(() => add(-1)))
    }
  }
  wait('ada', 2_000)
  t.equal(counts.get('ada'), 1_024)
  t.equal(await table.renew({ name: 'shop', agentId: 'ada' }, 1), false)
  for (let agent = 0; agent < 40; agent++) wait(`agent-${agent}`, 64)
  wait('bob', 10)
  await new Promise(setImmediate)
  t.equal(counts.get('bob'), 10, 'however many agents wait')
  counts.delete('bob')
  t.equal(Math.min(...counts.values()), 24)
  resolve({ ...none } as never)
  const outcomes = Map.groupBy((await Promise.all(ends)) as { refusal: string }[], ({ refusal }) => refusal)
  t.equal(outcomes.get('credential_unavailable')?.length, 1_024)
  t.strictSame([...outcomes.keys()].sort(), ['busy', 'credential_unavailable'])
  t.ok(table.ready(wanted, false) instanceof Promise, 'the places are free again')
})

t.test('a use is told once a second', async t => {
  const { table, clock, used } = open()
  for (const ms of [0, 999, 1]) {
    clock.advance(ms)
    table.noteUse('shop')
  }
  t.strictSame(used, ['shop', 'shop'])
})

t.test('scopes that a person can grant are a refusal, and people are told of all, once a second', async t => {
  const clock = createClock()
  const told: (readonly string[])[] = []
  const one = { name: 'mail all', version: 1, value: 'v', renewAt: Infinity, freshUntil: Infinity, problem: undefined }
  const table = createCredentialTable({
    ...{
      known: [
        { ...one, grantable: ['write'] },
        { ...one, name: 'shared' },
      ],
      clock,
      onUse: () => {},
    },
    need: async () => one,
    onWanted: (name, scopes, host) => told.push([name, host, ...scopes]),
  })
  const wanted = { name: 'mail all', agentId: 'a' }
  t.match(table.noteWanted(wanted, ['write', 'odd'], 'h'), {
    ...{ refusal: 'credential_scope_needed', status: 403 },
    detail: /^h wants the scope write .* mail again with it, in the console of the gateway/,
    members: { credential: 'mail', scope: 'write', connect: undefined },
  })
  t.equal(table.noteWanted(wanted, ['odd'], 'h'), undefined)
  t.equal(table.noteWanted({ name: 'shared', agentId: 'a' }, ['write'], 'h'), undefined)
  clock.advance(1_000)
  table.noteWanted(wanted, ['more'], 'h')
  t.strictSame(told, [
    ['mail all', 'h', 'write', 'odd'],
    ['shared', 'h', 'write'],
    ['mail all', 'h', 'more'],
  ])
})
