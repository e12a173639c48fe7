/** Threat T06 of SECURITY.md. */
import fc from 'fast-check'
import t from 'tap'
import { isRefusal, refuse } from '../../src/base/refusals.ts'
import type { ReplayResult } from '../../src/hitl/model.ts'
import type { Store } from '../../src/storage/store.ts'
import { createClock } from '../fixtures/clock.ts'
import { type Answer, answered, type Desk, held, openDesk, reviewer, secondReviewer } from '../fixtures/hitl.ts'
import { runs } from '../fixtures/runs.ts'
import { testdir } from '../fixtures/testdir.ts'

const agents = ['agent-1', 'agent-2']
const reviewers = [reviewer, secondReviewer]
const timeout = 3_600_000
const lease = 150_000
const retention = 86_400_000

/** What an item must look like, by rules far simpler than the code. */
interface Expected {
  readonly id: string
  readonly agentId: string
  readonly approvals: number
  readonly expiresAt: number
  status: 'Pending' | 'Approved' | 'Denied' | 'Withdrawn' | 'gone'
  replay: 'inFlight' | 'completed' | 'failed' | 'unknown' | null
  approvedBy: string[]
  leaseUntil: number
  decidedAt: number
  /** Requests that must have reached the upstream. */
  sends: number
}

interface Model {
  now: number
  readonly items: Expected[]
  readonly revoked: Set<string>
}

interface Real {
  desk: Desk
  /** All that the process held in memory is gone; with `whole`, the store is closed and opened too. */
  restart(whole: boolean): Promise<void>
}

type Command = fc.AsyncCommand<Model, Real>
type Behaviour = 'answered' | 'notSent' | 'failed' | 'breaksOff'

async function* broken() {
  yield Buffer.from('half')
  throw new TypeError('reset')
}

const behaviours: Record<Behaviour, () => ReplayResult> = {
  answered: () => answered(),
  notSent: () => ({ kind: 'notSent', refusal: refuse('upstream_failed') }),
  failed: () => ({ kind: 'failed', refusal: refuse('upstream_failed') }),
  breaksOff: () => answered(broken()),
}

/** An upstream that counts what reached it. */
function upstream(desk: Desk, reached: boolean, answer: () => Promise<ReplayResult>): Answer {
  return async () => {
    if (!reached) desk.sent.pop()
    return answer()
  }
}

const pick = (model: Model, index: number) => model.items[index % model.items.length]!
const isRepeatable = (item: Expected) => item.replay === 'failed' || item.replay === 'unknown'
const hasItems = (model: Readonly<Model>) => model.items.length > 0

function expect(actual: unknown, expected: unknown, what: string): void {
  if (JSON.stringify(actual) === JSON.stringify(expected)) return
  throw new TypeError(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`)
}

/** The store's view of every item, and the upstream's, against the model. */
async function compare(model: Model, { desk }: Real): Promise<void> {
  const all = await Promise.all(model.items.map(item => desk.queue.get(item.id, reviewer)))
  for (const [index, item] of model.items.entries()) {
    const found = all[index]
    const actual = found === undefined ? { status: 'gone' } : { status: found.status, replay: found.replay }
    const expected = item.status === 'gone' ? { status: 'gone' } : { status: item.status, replay: item.replay }
    expect(actual, expected, `item ${item.id}`)
    expect(desk.sent.filter(({ context }) => context.hitlId === item.id).length, item.sends, `sends of ${item.id}`)
  }
}

/** What the refusal of an approval must be; undefined when it must count. */
function refusalOf(model: Model, item: Expected, resend: boolean): string | undefined {
  if (item.status === 'gone') return 'not_found'
  if (item.status === 'Withdrawn') return 'withdrawn'
  if (resend && item.status === 'Pending') return 'wrong_state'
  if (resend ? !isRepeatable(item) : item.status !== 'Pending') return 'already_decided'
  return model.revoked.has(item.agentId) ? 'agent_revoked' : undefined
}

/** Counts an approval; whether it claims the item. */
function claims(model: Model, item: Expected, by: string, resend: boolean): boolean {
  if (!resend && !item.approvedBy.includes(by)) item.approvedBy.push(by)
  if (!resend && item.approvedBy.length < item.approvals) return false
  if (!resend) item.decidedAt = model.now
  item.status = 'Approved'
  item.leaseUntil = model.now + lease
  return true
}

class Suspend implements Command {
  readonly agent: number
  readonly approvals: number
  constructor(agent: number, approvals: number) {
    this.agent = agent
    this.approvals = approvals
  }
  check = () => true
  async run(model: Model, real: Real) {
    const agentId = agents[this.agent]!
    const suspension = held({ approvals: this.approvals, agent: { ...reviewer, id: agentId } })
    const result = await real.desk.queue.suspend(suspension)
    // Whoever lost the right while the body came is not held any more.
    const refused = isRefusal(result) ? result.refusal : undefined
    expect(refused, model.revoked.has(agentId) ? 'agent_revoked' : undefined, 'refusal')
    if (isRefusal(result)) return
    const { id, expiresAt } = result
    expect(expiresAt, model.now + timeout, 'expiry')
    const fresh = { status: 'Pending', replay: null, approvedBy: [], leaseUntil: 0, decidedAt: 0, sends: 0 } as const
    model.items.push({ id, agentId, approvals: this.approvals, expiresAt, ...fresh, approvedBy: [] })
    await compare(model, real)
  }
  toString = () => `suspend(${agents[this.agent]}, ${this.approvals})`
}

interface ApproveOptions {
  readonly index: number
  readonly by: number
  /** Whether `resend` is what the state of the item asks for. */
  readonly apt: boolean
  readonly behaviour: Behaviour
  readonly times: number
}

class Approve implements Command {
  readonly options: ApproveOptions
  constructor(options: ApproveOptions) {
    this.options = options
  }
  check = hasItems
  async run(model: Model, real: Real) {
    const { index, by, apt, behaviour, times } = this.options
    const item = pick(model, index)
    const resend = isRepeatable(item) === apt
    const { desk } = real
    const person = reviewers[by]!
    desk.answer = upstream(desk, behaviour !== 'notSent', async () => behaviours[behaviour]())
    const expectedCode = refusalOf(model, item, resend)
    const before = item.replay
    const claimed = expectedCode === undefined && claims(model, item, person.id, resend)
    const approval = { reviewer: person, resend, requestId: null }
    // At the same moment or, of what may be tried again, once.
    const count = behaviour === 'answered' ? times : 1
    const results = await Promise.all(Array.from({ length: count }, () => desk.queue.approve(item.id, approval)))
    await desk.queue.idle()
    if (expectedCode !== undefined) {
      for (const result of results) expect(isRefusal(result) && result.refusal, expectedCode, 'refusal')
    } else if (claimed) {
      settle(item, behaviour, before)
      if (behaviour === 'answered') {
        const codes = results.filter(isRefusal).map(result => result.refusal)
        expect(codes, Array(count - 1).fill('already_decided'), 'losers')
      }
    }
    await compare(model, real)
  }
  toString = () => `approve(${JSON.stringify(this.options)})`
}

function settle(item: Expected, behaviour: Behaviour, before: Expected['replay']): void {
  if (behaviour !== 'notSent') {
    item.sends++
    item.replay = behaviour === 'answered' ? 'completed' : 'failed'
  } else if (before === null) {
    item.status = 'Pending'
    item.approvedBy = []
  }
}

/** What the refusal of a denial or withdrawal must be, by what became of the item before. */
const refusalOfClosing = {
  gone: 'not_found',
  Pending: false,
  Approved: 'already_decided',
  Denied: 'already_decided',
  Withdrawn: 'withdrawn',
} as const

class Deny implements Command {
  readonly index: number
  constructor(index: number) {
    this.index = index
  }
  check = hasItems
  async run(model: Model, real: Real) {
    const item = pick(model, this.index)
    const result = await real.desk.queue.deny(item.id, { reviewer, requestId: null })
    expect(isRefusal(result) && result.refusal, refusalOfClosing[item.status], 'denial')
    if (item.status === 'Pending') Object.assign(item, { status: 'Denied', decidedAt: model.now })
    await compare(model, real)
  }
  toString = () => `deny(${this.index})`
}

class Withdraw implements Command {
  readonly index: number
  constructor(index: number) {
    this.index = index
  }
  check = hasItems
  async run(model: Model, real: Real) {
    const item = pick(model, this.index)
    const withdrawal = { agentId: item.agentId, requestId: null, cause: 'asked' } as const
    const stranger = { ...withdrawal, agentId: agents.find(id => id !== item.agentId)! }
    const stolen = await real.desk.queue.withdraw(item.id, stranger)
    expect(isRefusal(stolen) && stolen.refusal, 'not_found', 'withdrawal by another agent')
    const result = await real.desk.queue.withdraw(item.id, withdrawal)
    const expected = item.status === 'Withdrawn' ? false : refusalOfClosing[item.status]
    expect(isRefusal(result) && result.refusal, expected, 'withdrawal')
    if (item.status === 'Pending') Object.assign(item, { status: 'Withdrawn', decidedAt: model.now })
    await compare(model, real)
  }
  toString = () => `withdraw(${this.index})`
}

/** The process dies after the claim, before or after the request reached the upstream. */
class Crash implements Command {
  readonly index: number
  readonly reached: boolean
  constructor(index: number, reached: boolean) {
    this.index = index
    this.reached = reached
  }
  check = (model: Readonly<Model>) => hasItems(model) && pick(model, this.index).approvals === 1
  async run(model: Model, real: Real) {
    const item = pick(model, this.index)
    const { desk } = real
    const resend = isRepeatable(item)
    const sending = Promise.withResolvers<void>()
    desk.answer = upstream(desk, this.reached, () => {
      sending.resolve()
      return new Promise(() => {})
    })
    const approval = desk.queue.approve(item.id, { reviewer, resend, requestId: null })
    const refused = refusalOf(model, item, resend)
    if (refused === undefined) {
      await sending.promise
      claims(model, item, reviewer.id, resend)
      item.replay = 'inFlight'
      if (this.reached) item.sends++
    } else {
      expect(isRefusal(await approval), true, 'refusal before the crash')
    }
    await real.restart(false)
    await compare(model, real)
  }
  toString = () => `crash(${this.index}, ${this.reached ? 'sent' : 'not sent'})`
}

class Restart implements Command {
  check = () => true
  async run(model: Model, real: Real) {
    await real.desk.queue.idle()
    await real.restart(true)
    await compare(model, real)
  }
  toString = () => 'restart'
}

class Advance implements Command {
  readonly ms: number
  constructor(ms: number) {
    this.ms = ms
  }
  check = () => true
  async run(model: Model, real: Real) {
    model.now += this.ms
    ;(real.desk.clock as ReturnType<typeof createClock>).advance(this.ms)
    await real.desk.queue.sweep()
    for (const item of model.items) pass(item, model.now)
    await compare(model, real)
  }
  toString = () => `advance(${this.ms})`
}

function pass(item: Expected, now: number): void {
  if (item.status === 'Pending' && item.expiresAt <= now) item.status = 'gone'
  if (item.replay === 'inFlight' && item.leaseUntil <= now) item.replay = 'unknown'
  const closed = item.status === 'Denied' || item.status === 'Withdrawn'
  const decided = closed || (item.status === 'Approved' && item.replay !== 'inFlight')
  if (decided && item.decidedAt < now - retention) item.status = 'gone'
}

class Revoke implements Command {
  readonly agent: number
  readonly lift: boolean
  constructor(agent: number, lift: boolean) {
    this.agent = agent
    this.lift = lift
  }
  check = () => true
  async run(model: Model) {
    if (this.lift) model.revoked.delete(agents[this.agent]!)
    else model.revoked.add(agents[this.agent]!)
  }
  toString = () => `${this.lift ? 'lift' : 'revoke'}(${agents[this.agent]})`
}

const anyIndex = fc.nat({ max: 5 })
const anyApproval = fc.record({
  index: anyIndex,
  by: fc.nat({ max: 1 }),
  apt: fc.constantFrom(true, true, true, false),
  behaviour: fc.constantFrom<Behaviour>('answered', 'notSent', 'failed', 'breaksOff'),
  times: fc.integer({ min: 1, max: 4 }),
})
const suspends = fc.tuple(fc.nat({ max: 1 }), fc.constantFrom(1, 1, 1, 2)).map(([a, n]) => new Suspend(a, n))
const approves = anyApproval.map(options => new Approve(options))
const commands: fc.Arbitrary<Command>[] = [
  suspends,
  suspends,
  approves,
  approves,
  approves,
  anyIndex.map(index => new Deny(index)),
  anyIndex.map(index => new Withdraw(index)),
  fc.constantFrom(1_000, lease, timeout, retention + 1).map(ms => new Advance(ms)),
  fc.tuple(fc.nat({ max: 1 }), fc.boolean()).map(([agent, lift]) => new Revoke(agent, lift)),
  fc.oneof(
    // Starting a store takes a hundred times as long as any other step: some twenty of a thousand lives have one.
    { weight: 60, arbitrary: fc.tuple(anyIndex, fc.boolean()).map(([index, sent]) => new Crash(index, sent)) },
    { weight: 1, arbitrary: fc.constant(new Restart()) },
  ),
]

/** No request reached the upstream without an approval on record that carries its digest (one each). */
async function everySendIsAudited(desk: Desk): Promise<void> {
  const { items } = await desk.store.audit.list({ page: 1, pageSize: 100_000 }, { action: 'hitl.approve' })
  const claims = new Map<string, number>()
  for (const { subject, details } of items) {
    if (details['attempt'] !== undefined) claims.set(subject, (claims.get(subject) ?? 0) + 1)
  }
  const sends = new Map<string, number>()
  for (const { context } of desk.sent) sends.set(context.hitlId, (sends.get(context.hitlId) ?? 0) + 1)
  for (const [id, count] of sends) {
    if (count > (claims.get(id) ?? 0)) throw new TypeError(`${id} was sent ${count} times`)
  }
}

t.test('any lives of held requests go as the rules say', async t => {
  const directory = testdir(t)
  const clock = createClock()
  const alone = 'the rules are asked thousands of times'
  const open = (store?: Store) =>
    openDesk({ directory, clock, alone, settings: { MaxPendingRequests: 100_000 }, ...(store && { store }) })
  let desk = await open()
  t.teardown(() => desk.store.close())

  await fc.assert(
    fc.asyncProperty(suspends, fc.commands(commands, { maxCommands: 24, size: 'max' }), async (first, sequence) => {
      const model: Model = { now: clock.now(), items: [], revoked: new Set() }
      const follow = () => {
        desk.problem = agentId => (model.revoked.has(agentId) ? refuse('agent_revoked') : undefined)
      }
      const real: Real = {
        desk,
        async restart(whole) {
          const { sent } = desk
          if (whole) await desk.store.close()
          desk = Object.assign(await open(whole ? undefined : desk.store), { sent })
          real.desk = desk
          follow()
        },
      }
      follow()
      await first.run(model, real)
      await fc.asyncModelRun(() => ({ model, real }), sequence)
    }),
    { numRuns: runs(1_000) },
  )
  await everySendIsAudited(desk)
  t.ok(desk.sent.length > runs(500, 15), `${desk.sent.length} requests reached the upstream`)
})
