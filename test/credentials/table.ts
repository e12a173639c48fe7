/** Requests of a thread that wait for credentials. Threat T84. */
import t from 'tap'
import { createCredentialTable } from '../../src/credentials/table.ts'
import { createClock } from '../fixtures/clock.ts'

const none = { name: 'shop', version: 0, value: undefined, freshUntil: 0, renewAt: 0, problem: undefined }

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
  t.equal(await table.ready({ name: 'shop' }, false), undefined)
  t.strictSame(asked, [undefined])
  t.equal(table.ready({ name: 'shop' }, false), undefined)
  t.equal(asked.length, 1)
  table.set(state({ renewAt: clock.steady() }))
  for (let times = 0; times < 3; times++) t.equal(table.ready({ name: 'shop' }, false), undefined)
  t.equal(asked.length, 2)
})

t.test('a request that is sent once gets a value that lasts a minute, or a new one', async t => {
  const { table, clock, asked, state } = open()
  table.set(state({ version: 2, freshUntil: clock.steady() + 29_000, renewAt: clock.steady() - 1 }))
  t.equal(table.ready({ name: 'shop' }, false), undefined)
  const short = open({ version: 3, freshUntil: 20_000, renewAt: 0 })
  short.table.set(
    short.state({ version: 2, freshUntil: short.clock.steady() + 29_000, renewAt: short.clock.steady() - 1 }),
  )
  t.match(await short.table.ready({ name: 'shop' }, true), { refusal: 'credential_unavailable' })
  table.set(state({ version: 3, freshUntil: clock.steady() + 30_000, renewAt: clock.steady() - 1 }))
  t.equal(table.ready({ name: 'shop' }, true), undefined)
  table.set(state({ version: 4, freshUntil: clock.steady() + 20_000, renewAt: clock.steady() + 10_000 }))
  t.equal(table.ready({ name: 'shop' }, true), undefined, 'a new one of a short life')
  t.equal(asked.length, 1)
})

t.test('an answer that is late does not bring back a value that was taken back meanwhile', async t => {
  const clock = createClock()
  const { promise, resolve } = Promise.withResolvers<void>()
  const old = { ...none, version: 1, value: 'v', freshUntil: 1e9, renewAt: 1e9 }
  const need = () => promise.then(() => old)
  const table = createCredentialTable({ known: [none], need, onUse: () => {}, clock })
  const waiting = table.ready({ name: 'shop' }, false)
  table.set({ ...none, version: 2, problem: { kind: 'needed', text: 'ask' } })
  resolve()
  t.match(await waiting, { refusal: 'credential_needed' })
  t.equal(table.fresh({ name: 'shop' }), undefined)
})

t.test('so many requests wait and no more', async t => {
  const clock = createClock()
  const { promise, resolve } = Promise.withResolvers<never>()
  const table = createCredentialTable({ known: [none], need: () => promise, onUse: () => {}, clock })
  const waiting = Array.from({ length: 1_024 }, () => table.ready({ name: 'shop' }, false))
  t.match(table.ready({ name: 'shop' }, false), { refusal: 'busy' })
  t.equal(await table.renew({ name: 'shop' }, 1), false)
  resolve({ ...none } as never)
  t.match(await waiting[0], { refusal: 'credential_unavailable' })
})

t.test('a use is told once a second', async t => {
  const { table, clock, used } = open()
  for (const ms of [0, 999, 1]) {
    clock.advance(ms)
    table.noteUse('shop')
  }
  t.strictSame(used, ['shop', 'shop'])
})
