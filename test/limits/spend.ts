/** T77, budgets against a store in memory: what calls reserve, and what is left of it. */
import fc from 'fast-check'
import t from 'tap'
import { createTableMemory, SharedTable } from '../../src/limits/shared-table.ts'
import { SpendBook, type SpendCharge } from '../../src/limits/spend.ts'
import { grantOf, keyOf, rowOf, type SpendAnswer, type SpendAsk } from '../../src/limits/spend-lease.ts'
import { spendShape } from '../../src/limits/spend-slots.ts'
import { runs } from '../fixtures/runs.ts'

const threads = 2
const shape = { ...spendShape(threads), slots: 64 }

/** Rows as the store keeps them. */
class Rows {
  spent = 0
  raised = 0
  readonly leases = new Map<string, { leased: number; spent: number }>()

  lease(gateway: string, ask: SpendAsk, gateways = 1): SpendAnswer {
    const own = this.leases.get(gateway)
    this.spent += Math.max(0, ask.spent - (ask.begins ? 0 : (own?.spent ?? 0)))
    const others = [...this.leases].reduce((sum, [id, { leased }]) => sum + (id === gateway ? 0 : leased), 0)
    const state = { spent: this.spent, others, raised: this.raised }
    const leased = grantOf(ask, state, gateways)
    this.leases.set(gateway, { leased, spent: ask.spent })
    return { key: ask.key, leased, ...state }
  }

  forfeit(gateway: string): void {
    this.spent += this.leases.get(gateway)?.leased ?? 0
    this.leases.delete(gateway)
  }
}

const key = keyOf({ budget: 'b', holder: 'an owner', from: 1, until: 2 })

class Gateway {
  readonly name: string
  readonly rows: Rows
  readonly needed = new Set<string>()
  readonly books: readonly SpendBook[]
  now = 0

  constructor(name: string, rows: Rows) {
    this.name = name
    this.rows = rows
    const memory = createTableMemory(shape, new Uint8Array(8).fill(7))
    this.books = Array.from({ length: threads }, (_, thread) => {
      const table = new SharedTable(memory, shape, thread)
      return new SpendBook({ table, onNeed: need => this.needed.add(need) })
    })
  }

  ask(limit: number, exact = false): void {
    const ask = this.books[0]!.ask(key, { limit, exact }, this.now)
    if (ask !== undefined) this.books[0]!.accept(ask, this.rows.lease(this.name, ask), this.now)
  }

  /** As the pipeline does. */
  reserve(charge: SpendCharge, thread = 0, exact = false): string {
    for (let asks = 0; asks < 5; asks++) {
      const reserved = this.books[thread]!.reserve([charge], this.now)
      if (reserved === undefined) return 'reserved it'
      if ('bar' in reserved) return reserved.bar
      this.ask(charge.limit!, exact)
    }
    return 'asked too often'
  }
}

const chargeOf = (amount: number, limit = 100): SpendCharge => ({ key, amount, limit, passes: false })
const ended = (cost: number) => ({ cost, isEstimated: false, isCall: true })

t.test('a key says its row', async t => {
  t.strictSame(rowOf(key), { budget: 'b', holder: 'an owner', from: 1, until: 2 })
})

t.test('calls pass while anything is left, and the last one may exceed it', async t => {
  const gateway = new Gateway('a', new Rows())
  t.equal(gateway.reserve(chargeOf(60)), 'reserved it')
  t.equal(gateway.reserve(chargeOf(60)), 'reserved it')
  t.equal(gateway.reserve(chargeOf(60)), 'reserved')
  gateway.books[0]!.settle(chargeOf(60), ended(20))
  t.equal(gateway.reserve(chargeOf(60)), 'reserved it', 'what was not spent is free again')
  for (let n = 0; n < 2; n++) gateway.books[0]!.settle(chargeOf(60), ended(60))
  t.equal(gateway.reserve(chargeOf(1)), 'exceeded')
  gateway.ask(100)
  t.equal(gateway.rows.spent, 140)
})

t.test('a call reserves in all of its budgets or in none', async t => {
  const gateway = new Gateway('a', new Rows())
  const [book] = gateway.books as [SpendBook]
  const second = { ...chargeOf(5), key: keyOf({ budget: 'c', holder: 'x', from: 1, until: 2 }) }
  gateway.reserve(chargeOf(10))
  book.settle(chargeOf(10), ended(0))
  t.strictSame(book.reserve([chargeOf(1), second], 0), [second.key])
  t.equal(book.stateOf(key)?.reserved, 0)
})

t.test('what rules read is two seconds old at most, or is asked for first', async t => {
  const gateway = new Gateway('a', new Rows())
  const [book] = gateway.books as [SpendBook]
  const look = (now: number) => {
    gateway.now = now
    gateway.needed.clear()
    return [book.look(key, now)?.spent, gateway.needed.size] as const
  }
  t.strictSame(look(0), [undefined, 1], 'it is not known')
  gateway.ask(100)
  t.strictSame(look(500), [0, 0])
  gateway.rows.spent = 30
  t.strictSame(look(1_500), [0, 1], 'it is asked for, and nobody waits')
  gateway.ask(100)
  t.strictSame(look(1_600), [30, 0], 'others have spent it')
  t.strictSame(look(3_700), [undefined, 1], 'it is too old')
  book.goAlone(key)
  t.strictSame(look(3_700), [undefined, 0], 'the store does not answer')
})

t.test('remains of leases that are too small for the calls that wait come together', async t => {
  const rows = new Rows()
  const gateways = [new Gateway('a', rows), new Gateway('b', rows)]
  // Both lease a call beyond what is left, which costs less than it reserved.
  for (const gateway of gateways) {
    gateway.now += 100
    t.equal(gateway.reserve(chargeOf(60)), 'reserved it')
  }
  for (const gateway of gateways) gateway.books[0]!.settle(chargeOf(60), ended(40))
  // Their calls come so often that the gateways are never idle.
  const outcomes = [0, 1].flatMap(() =>
    gateways.map(gateway => {
      gateway.now += 1_500
      return gateway.reserve(chargeOf(30))
    }),
  )
  t.equal(outcomes.filter(outcome => outcome === 'reserved it').length, 1, 'the last call of the budget')
})

t.test(
  'what is too little for a call under an exact budget is leased by no gateway: all know that it is used up',
  async t => {
    const rows = new Rows()
    const gateways = [new Gateway('a', rows), new Gateway('b', rows)]
    for (const gateway of gateways) {
      t.equal(gateway.reserve(chargeOf(40), 0, true), 'reserved it')
      gateway.books[0]!.settle(chargeOf(40), ended(40))
    }
    for (let round = 0; round < 2; round++) {
      for (const gateway of gateways) {
        gateway.now += 1_500
        t.equal(gateway.reserve(chargeOf(30), 0, true), 'reserved')
        if (round > 0) t.match(gateway.books[0]!.stateOf(key), { spent: 80, reserved: 0 })
      }
    }
    t.equal(gateways[0]!.reserve(chargeOf(30), 0, true), 'reserved', 'it has just asked')
    t.equal(gateways[0]!.reserve(chargeOf(20), 0, true), 'reserved it', 'a smaller call still fits, at once')
  },
)

t.test('a raise lets calls pass again', async t => {
  const gateway = new Gateway('a', new Rows())
  gateway.reserve(chargeOf(100))
  gateway.books[0]!.settle(chargeOf(100), ended(100))
  t.equal(gateway.reserve(chargeOf(1)), 'exceeded')
  gateway.rows.raised = 50
  gateway.now += 2_000
  t.equal(gateway.reserve(chargeOf(1)), 'reserved it')
})

t.test('what a dead thread had reserved is spent', async t => {
  const gateway = new Gateway('a', new Rows())
  gateway.reserve(chargeOf(30), 1)
  gateway.books[0]!.forget(1)
  t.match(gateway.books[0]!.stateOf(key), { spent: 30, reserved: 0 })
})

t.test('without an answer, calls pass within the lease alone', async t => {
  const gateway = new Gateway('a', new Rows())
  gateway.reserve(chargeOf(30))
  const [book] = gateway.books as [SpendBook]
  t.type(book.reserve([chargeOf(10)], 0), Array)
  book.miss(book.ask(key, { limit: 100, exact: false }, 0)!)
  t.match(book.reserve([chargeOf(10)], 0), { bar: 'away' })
  book.settle(chargeOf(30), ended(5))
  t.equal(book.reserve([chargeOf(10)], 0), undefined, 'of what the first call gave back')
})

t.test('a gateway alone reports every four seconds while the limit is far, and every second otherwise', async t => {
  const open = (limit: number, amount: number) => {
    const gateway = new Gateway('a', new Rows())
    gateway.reserve(chargeOf(amount, limit))
    gateway.books[0]!.settle(chargeOf(amount, limit), ended(amount))
    return (now: number, isAlone = true, calledAt = now) => {
      gateway.books[0]!.look(key, calledAt)
      return gateway.books[0]!.isDue(key, now, isAlone)
    }
  }
  const far = open(100, 50)
  t.strictSame([far(999), far(1_000), far(3_999), far(4_000)], [false, false, false, true])
  t.equal(far(1_000, false), true, 'others count on it')
  t.equal(far(3_000, true, 0), true, 'it is idle')
  const near = open(100, 51)
  t.strictSame([near(999), near(1_000)], [false, true])
  const gateway = new Gateway('a', new Rows())
  gateway.reserve(chargeOf(60))
  t.equal(gateway.books[0]!.isDue(key, 1_000, true), false, 'nothing has changed')
})

t.test('a gateway leases again before its lease is used up, later while the limit is far', async t => {
  const callsUntilAsked = (limit: number): number => {
    const gateway = new Gateway('a', new Rows())
    gateway.reserve(chargeOf(10, limit))
    gateway.now += 1_000
    gateway.ask(limit)
    gateway.needed.clear()
    let calls = 0
    for (; gateway.needed.size === 0; calls++) gateway.reserve(chargeOf(1, limit))
    return calls
  }
  // Of 10 that are leased ahead, and of 6.
  t.strictSame([callsUntilAsked(10_000), callsUntilAsked(35)], [9, 2])
})

t.test('an idle key is told, given back and forgotten', async t => {
  const gateway = new Gateway('a', new Rows())
  gateway.reserve(chargeOf(30))
  gateway.books[0]!.settle(chargeOf(30), ended(7))
  gateway.now += 5_000
  gateway.ask(100)
  t.strictSame([gateway.rows.spent, gateway.rows.leases.get('a')?.leased], [7, 0])
  t.equal(gateway.books[0]!.ask(key, { limit: 100, exact: false }, gateway.now), undefined)
  t.equal(gateway.books[0]!.stateOf(key), undefined)
  t.equal(gateway.reserve(chargeOf(30)), 'reserved it')
  gateway.books[0]!.settle(chargeOf(30), ended(8))
  gateway.ask(100)
  t.equal(gateway.rows.spent, 15, 'sums begin again at zero')
})

t.test(
  'in any order of calls, ends, lost answers and crashes nothing is lost, and the limit holds as promised',
  async t => {
    const step = fc.record({
      what: fc.constantFrom('reserve', 'reserve', 'reserve', 'end', 'end', 'ask', 'lose', 'time', 'crash'),
      gateway: fc.integer({ min: 0, max: 2 }),
      amount: fc.integer({ min: 1, max: 40 }),
      share: fc.double({ min: 0, max: 2, noNaN: true }),
    })
    const property = fc.property(fc.array(step, { maxLength: 80 }), steps => {
      const limit = 100
      const rows = new Rows()
      const gateways = [0, 1, 2].map(n => new Gateway(`g${n}`, rows))
      const underway: { gateway: Gateway; charge: SpendCharge }[] = []
      let real = 0
      let over = 0
      /** Beyond what was leased, and perhaps not told before a crash. */
      let untold = 0
      const overOf = new Map<Gateway, number>()
      for (const { what, gateway: n, amount, share } of steps) {
        const gateway = gateways[n]!
        const [book] = gateway.books as [SpendBook]
        if (what === 'reserve') {
          const charge = chargeOf(amount, limit)
          if (gateway.reserve(charge) === 'reserved it') underway.push({ gateway, charge })
        } else if (what === 'end') {
          const [call] = underway.splice(amount % Math.max(1, underway.length), 1)
          if (call === undefined) continue
          const cost = Math.floor(call.charge.amount * share)
          real += cost
          const beyond = Math.max(0, cost - call.charge.amount)
          over += beyond
          overOf.set(call.gateway, (overOf.get(call.gateway) ?? 0) + beyond)
          call.gateway.books[0]!.settle(call.charge, ended(cost))
        } else if (what === 'ask') gateway.ask(limit)
        else if (what === 'lose') {
          const ask = book.ask(key, { limit, exact: false }, gateway.now)
          if (ask === undefined) continue
          rows.lease(gateway.name, ask)
          book.miss(ask)
        } else if (what === 'time') for (const each of gateways) each.now += amount * 100
        else {
          rows.forfeit(gateway.name)
          untold += overOf.get(gateway) ?? 0
          // Its calls have cost at most what they reserved.
          for (const call of underway.filter(({ gateway: of }) => of === gateway)) {
            real += call.charge.amount
            underway.splice(underway.indexOf(call), 1)
          }
          gateways[n] = new Gateway(`${gateway.name}'`, rows)
        }
      }
      const reserved = underway.reduce((sum, { charge }) => sum + charge.amount, 0)
      // Each call that was too cheaply reserved, and one more call, may exceed the limit.
      if (real + reserved > limit + over + 40) return false
      for (const { gateway, charge } of underway) gateway.books[0]!.settle(charge, ended(0))
      for (const gateway of gateways) {
        gateway.books[0]!.close()
        gateway.ask(limit)
        gateway.ask(limit)
      }
      // Never below: a lease that was lost counts as spent.
      return rows.spent + untold >= real && [...rows.leases.values()].every(({ leased }) => leased === 0)
    })
    fc.assert(property, { numRuns: runs(10_000, 500) })
    t.pass()
  },
)
