/**
 * T77, budgets of money against the bill of a model server that keeps its own count: dear calls at once, and calls under
 * faults. The numbers are those of docs/budgets.md. Amounts are ten thousandths of the currency.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { fileTest } from '../fixtures/file-test.ts'
import { fault, inCampaign } from '../fixtures/fleet/fault.ts'
import type { Bot, Fleet } from '../fixtures/fleet/fleet.ts'
import { codeOf, makeCall } from '../fixtures/fleet/ledger.ts'
import type { Member } from '../fixtures/fleet/member.ts'
import { documentCall, modelPrices, type Order, startModelServer, streamCall } from '../fixtures/fleet/model-server.ts'
import { eventually } from '../fixtures/gateway.ts'

const unit = 10_000
/** A machine may have much else to do. */
const longestMs = 3_600_000
const limit = 10 * unit
const model = await startModelServer(fileTest())
const budget = (Name: string, more: object) => ({ Name, Limit: limit / unit, Per: 'Month', Owners: [Name], ...more })
const shares = { r25: 25, r50: 50, r100: 100, exact: 100 } as const
const config = {
  Metering: { Hosts: [model.host] },
  Prices: modelPrices,
  System: { RateLimit: { RequestsPerMinute: 600_000, Burst: 10_000, MaxInFlight: 256 } },
  Budgets: [
    ...Object.entries(shares).map(([name, Reserve]) => budget(name, name === 'exact' ? { Exact: true } : { Reserve })),
    ...['told', 'left', 'untold', 'fenced'].map(name => budget(name, { Limit: 1_000_000 })),
    budget('killed', { Limit: 1_000_000, Reserve: 100 }),
  ],
}

/** These faults are none of the gateways: on a busy machine a fence that falls, or a short time limit, would be one. */
const patient = {
  ...config,
  Fleet: { FenceAfterSeconds: 60 },
  Proxy: { ConnectTimeoutSeconds: 10, HeadersTimeoutSeconds: 15 },
  HumanInTheLoop: { LeaseSeconds: 30 },
}

/** An agent of its own, whose calls pass. */
async function newBot(fleet: Fleet, ownerId: string): Promise<Bot> {
  const policyName = 'models'
  await fleet.manage(fleet.a, 'POST', '/policies', { name: policyName, default: 'Allow', rules: [] })
  return fleet.bot({ ownerId, policyName })
}

/** Not in the ledger of the fleet, whose upstream is another one. */
const call = (at: Member, { token }: Bot, body: string, patience = 30_000) => {
  const headers = { 'Gateway-Authorization': `Bearer ${token}` }
  const request = { method: 'POST', path: `/proxy/${model.url}`, patience, headers, body: JSON.parse(body) }
  return makeCall(at, request, { does: 'other' })
}

interface Count {
  readonly counted: number
  /** The part that no answer told. */
  readonly estimated: number
}

/** What the gateways counted, once nothing is under way and no lease is left. */
async function countOf(fleet: Fleet, bot: Bot): Promise<Count> {
  await eventually(model.underway, count => count === 0)
  const sum = async (column: string, table: string): Promise<number> => {
    const text = `select coalesce(sum(${column}), 0)::float8 as sum from ${table} where holder = $1`
    return (await fleet.db.query(text, [bot.id])).rows[0].sum
  }
  let before = -1
  const spent = await eventually(
    async () => {
      const [leased, now] = [await sum('leased', 'spend_leases'), await sum('spent', 'spend')]
      const isStill = leased === 0 && now === before
      before = now
      await sleep(300)
      return isStill ? now : undefined
    },
    found => found !== undefined,
  )
  const inUnits = (billionths: number) => billionths / (1e9 / unit)
  return { counted: inUnits(spent ?? 0), estimated: inUnits(await sum('estimated', 'spend')) }
}

/**
 * Holds the count against the bill. What was read is what was told. The rest of the count is estimates, which explain it to
 * the cent: without any the count is the bill, and with them it is never below.
 */
async function compare(t: Test, fleet: Fleet, { name, bot }: { readonly name: string; readonly bot: Bot }) {
  const [{ counted, estimated }, { all, told }] = [await countOf(fleet, bot), model.billOf(bot.id)]
  const text = `${name}: billed ${shown(all)}, told ${shown(told)}, counted ${shown(counted)}, estimated ${shown(estimated)}`
  const read = counted - estimated
  // An answer that was cut off in the gateway may have left the model server whole.
  t.ok(read <= told, `${text}: nothing was read that was not told`)
  t.ok(counted >= all, `${text}: no less is counted than billed`)
  if (estimated === 0) t.equal(counted, all, `${name}: the count is the bill`)
  return { text, billed: all, estimated, read, told }
}

const shown = (amount: number): string => (amount / unit).toFixed(4)
const mean = (all: readonly number[]) => all.reduce((sum, each) => sum + each, 0) / all.length
const rounds = inCampaign ? 5 : 1
const maxTries = 20

/** Each costs 1.34, all that it may. */
const dear = { writes: 1_337, ms: 200 }

fault(30, '64 dear calls at once exceed a budget by no more than it says', { config: patient }, async (t, fleet) => {
  t.setTimeout(longestMs)
  const { a, members } = fleet
  for (const [name, share] of Object.entries(shares)) {
    for (const places of [[a], members]) {
      const over: number[] = []
      let round = 0
      for (let tries = 0; round < rounds && tries < maxTries; tries++) {
        const bot = await newBot(fleet, name)
        const body = documentCall({ agent: bot.id, ...dear })
        const calls = await Promise.all(
          Array.from({ length: 64 }, (_, n) => call(places[n % places.length]!, bot, body)),
        )
        const { billed, estimated } = await compare(t, fleet, { name, bot })
        t.equal(estimated, 0, `${name}: every answer told`)
        over.push(Math.max(0, billed - limit))
        const codes = new Set(calls.filter(({ status }) => status !== 200).map(codeOf))
        // The database took too long for a lease, so less could be spent.
        if (codes.delete('store_unavailable')) continue
        round += 1
        t.ok(billed >= limit / 2, `${name}: ${shown(billed)} of ${shown(limit)} could be spent at once`)
        t.strictSame(
          [...codes].filter(code => !code?.startsWith('budget_')),
          [],
        )
      }
      t.equal(round, rounds, `${name}: the database answered in time`)
      const worst = Math.max(...over)
      const most = name === 'exact' ? 0 : limit * (100 / share - 1) + places.length * 13_500
      t.comment(`hostile, ${name}, ${places.length} gateways: ${shown(mean(over))} (${shown(worst)})`)
      t.ok(worst <= most, `${name}: ${shown(worst)} above the limit`)
    }
  }
})

const callers = inCampaign ? 64 : 24

fault(31, 'agents that write a tenth of what they may use a budget up', { config: patient }, async (t, fleet) => {
  t.setTimeout(longestMs)
  const { members } = fleet
  for (const name of inCampaign ? Object.keys(shares) : ['r50']) {
    const over: number[] = []
    for (let round = 0; round < rounds; round++) {
      const bot = await newBot(fleet, name)
      const work = async (n: number) => {
        for (;;) {
          const writes = 25 + Math.floor(50 * Math.random())
          const body = streamCall({ agent: bot.id, writes, ms: 20 }, true, 500)
          const code = codeOf(await call(members[n % members.length]!, bot, body))
          if (code === 'budget_exceeded') return
          await sleep(code === undefined ? 5 : 250)
        }
      }
      await Promise.all(Array.from({ length: callers }, (_, n) => work(n)))
      const { billed, estimated } = await compare(t, fleet, { name, bot })
      t.equal(estimated, 0, `${name}: every answer told`)
      // What is left of an exact budget may be less than a call can cost.
      const least = name === 'exact' ? limit - 8_000 : limit
      t.ok(billed >= 0.97 * least, `${name}: ${shown(billed)} of ${shown(limit)} were used`)
      over.push(Math.max(0, billed - limit))
    }
    t.comment(`coding, ${name}, 3 gateways: ${shown(mean(over))} (${shown(Math.max(...over))})`)
    t.ok(Math.max(...over) <= (name === 'exact' ? 0 : limit), name)
  }
})

const seconds = inCampaign ? 60 : 6
const chance = (share: number) => Math.random() < share
const fails = ['error', 'broken', 'silent'] as const

/** The calls of an agent, by what it is called. */
const kinds: Readonly<Record<string, (agent: string) => { readonly body: string; readonly patience?: number }>> = {
  told: agent => ({ body: toldCall({ agent, writes: 40, ms: 30 }) }),
  // Each leaves at another moment, before the head or behind it, and less than a second before the end.
  left: agent => ({ body: toldCall({ agent, writes: 40, ms: 60 }), patience: 1 + Math.floor(Math.random() * 150) }),
  untold(agent) {
    const order: Order = {
      ...{ agent, writes: 40, ms: 30 },
      ...(chance(0.5) && { fails: fails[Math.floor(3 * Math.random())]! }),
    }
    const body = chance(0.7) ? streamCall(order, false, 80) : documentCall(order, 80)
    return { body, ...(chance(0.3) && { patience: 1 + Math.floor(Math.random() * 100) }) }
  },
  // Answers are cut off when the fence falls, and with the process.
  fenced: agent => ({ body: toldCall({ agent, writes: 40, ms: 30 }) }),
  killed: agent => ({ body: toldCall({ agent, writes: 40, ms: 30 }) }),
}

const toldCall = (order: Order) => (chance(0.5) ? streamCall(order, true, 400) : documentCall(order, 400))

fault(32, 'what is counted is what is billed, and never less, whatever fails', { config }, async (t, fleet) => {
  t.setTimeout(longestMs)
  const { a, b, c } = fleet
  const places = { told: [a, a, a], left: [a, a, a], untold: [a, b], fenced: [b, b], killed: [c, c, a] }
  const bots = new Map<string, Bot>()
  for (const name of Object.keys(kinds)) bots.set(name, await newBot(fleet, name))
  let isOver = false
  const made = new Map<string, number>()
  const work = async (name: string, at: Member) => {
    const bot = bots.get(name)!
    while (!isOver) {
      const { body, patience } = kinds[name]!(bot.id)
      const { status } = await call(at, bot, body, patience)
      made.set(name, (made.get(name) ?? 0) + Number(status === 200 || status === 0))
      await sleep(10)
    }
  }
  const running = Object.keys(kinds).flatMap(name => places[name as keyof typeof places].map(at => work(name, at)))
  for (let second = 0; second < seconds; second += 6) {
    await sleep(1_500)
    // Shorter than the fence.
    for (const each of [a, b]) each.line.blackHole()
    await sleep(500)
    for (const each of [a, b]) each.line.heal()
    await sleep(500)
    await c.kill()
    // Longer than the fence.
    b.line.blackHole()
    await sleep(3_000)
    b.line.heal()
    await fleet.heal()
  }
  isOver = true
  await Promise.all(running)
  await fleet.heal()
  for (const [name, bot] of bots) {
    const { text, read, told } = await compare(t, fleet, { name, bot })
    t.comment(`${made.get(name)} calls, ${text}`)
    if (name === 'told') t.equal(read, told, 'all was read of answers that nobody left')
  }
})
