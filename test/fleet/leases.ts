/** T77, leases of many keys in one call: a key that the store cannot write takes none from others. */
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { type LeaseBook, Leases } from '../../src/fleet/leases.ts'
import { createClock } from '../fixtures/clock.ts'
import { eventually } from '../fixtures/gateway.ts'

interface Keyed {
  readonly key: string
}

const names = Array.from({ length: 9 }, (_, n) => `k${n}`)

/** Much longer than a busy machine takes, and soon over, milliseconds. */
const [patient, impatient] = [60_000, 20]

/** @param isBad whether the store fails on a key; `undefined`: it cannot be reached */
function start(isBad: (key: string | undefined) => boolean, until?: Promise<void>) {
  const calls: (readonly string[])[] = []
  const states = new Map<string, string>()
  const book: LeaseBook<Keyed, Keyed> = {
    ask: key => ({ key }),
    accept: ({ key }) => void states.set(key, 'leased'),
    miss: ({ key }) => void states.set(key, 'missed'),
    goAlone: key => void states.set(key, 'alone'),
    isDue: () => false,
  }
  const lease = async (asks: readonly Keyed[]): Promise<readonly Keyed[]> => {
    calls.push(asks.map(({ key }) => key))
    await until
    if (isBad(undefined) || asks.some(({ key }) => isBad(key))) throw new Error('the store failed')
    return asks
  }
  const clock = createClock()
  const leases = new Leases<Keyed, Keyed>({ book, lease, clock, lateMs: until === undefined ? patient : impatient })
  t.teardown(() => leases.close())
  return { leases, calls, states, clock }
}

t.test('a key at which the store fails is missed, the others of its call are leased', async t => {
  const { leases, calls, states, clock } = start(key => key === 'k4')
  const ask = () => Promise.all(names.map(key => leases.asked(key)))
  await ask()
  const missed = () => [...states].filter(([, state]) => state !== 'leased').map(([key]) => key)
  t.strictSame(missed(), ['k4'])
  calls.length = 0
  await ask()
  const sound = names.filter(key => key !== 'k4')
  t.strictSame(calls, [sound], 'from then on it is in no call of others')
  clock.advance(1_000)
  leases.need('k4')
  await eventually(
    () => calls.length,
    count => count >= 2,
  )
  t.strictSame(calls[1], ['k4'], 'it is asked for again, alone')
})

t.test('a store that cannot be reached is not asked for each key', async t => {
  let isDown = true
  const { leases, calls, states } = start(key => key === undefined && isDown)
  await Promise.all(names.map(key => leases.asked(key)))
  t.strictSame(calls, [names, []])
  t.strictSame(new Set(states.values()), new Set(['missed']))
  isDown = false
  for (const key of names) leases.need(key)
  await eventually(
    () => [...states.values()],
    all => all.every(state => state === 'leased'),
  )
})

t.test('once the store is late nobody waits for it, until it answers in time', async t => {
  const late = Promise.withResolvers<void>()
  const { leases, calls, states } = start(() => false, late.promise)
  await Promise.all(['k1', 'k2'].map(key => leases.asked(key)))
  t.strictSame(calls, [['k1', 'k2']], 'the call is still under way')
  await leases.asked('k3')
  t.strictSame(new Set(states.values()), new Set(['alone']))
  t.equal(states.size, 3)
  late.resolve()
  await eventually(
    () => [...states.values()],
    all => all.every(state => state === 'leased'),
  )
})

t.test('after a call that failed late, requests wait for the calls that search for its cause', async t => {
  const late = Promise.withResolvers<void>()
  const search = Promise.withResolvers<void>()
  const states = new Map<string, string>()
  const halves: string[] = []
  let lateMs = impatient
  const leases = new Leases<Keyed, Keyed>({
    clock: createClock(),
    get lateMs() {
      return lateMs
    },
    book: {
      ask: key => ({ key }),
      accept: ({ key }) => void states.set(key, 'leased'),
      miss: ({ key }) => void states.set(key, 'missed'),
      goAlone: key => void states.set(key, 'alone'),
      isDue: () => false,
    },
    async lease(asks) {
      if (asks.length === 2) {
        await late.promise
        throw new Error('a row was locked for long')
      }
      halves.push(...asks.map(({ key }) => key))
      if (asks.length > 0) await search.promise
      return asks
    },
  })
  t.teardown(() => leases.close())
  await Promise.all(['k1', 'k2'].map(key => leases.asked(key)))
  t.strictSame([...states.values()], ['alone', 'alone'])
  lateMs = patient
  late.resolve()
  await eventually(
    () => halves,
    keys => keys.length > 0,
  )
  let isOver = false
  const asked = leases.asked('k3').then(() => {
    isOver = true
  })
  await setImmediate()
  t.equal(isOver, false)
  search.resolve()
  await asked
  t.equal(states.get('k1'), 'leased')
})
