/** Several gateways on one database: a change is answered when no other one serves without it. */

import t, { type Test } from 'tap'
import { openPostgresStore, type SharedStore } from '../../src/storage/postgres/open.ts'
import type { AgentRecord } from '../../src/storage/store.ts'
import { eventually } from '../fixtures/gateway.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { startTcpProxy, type TcpProxy } from '../fixtures/tcp-proxy.ts'
import { agent, entry } from './contract/samples.ts'

/** Longer than a busy machine keeps a gateway from its turn. */
const fenceMs = 6_000

interface Member {
  readonly store: SharedStore
  readonly proxy: TcpProxy
  /** Agents as a registry shows them. */
  readonly shown: Map<string, AgentRecord>
}

type Settings = Awaited<ReturnType<typeof createSchema>>

/** A gateway's store behind a proxy of its own, followed as a gateway does. */
async function join(
  t: Test,
  settings: Settings,
  inForce?: () => Promise<unknown> | undefined,
  list: Member[] = [],
): Promise<Member> {
  const url = new URL(settings.connectionString)
  const proxy = await startTcpProxy(t, Number(url.port))
  url.port = String(proxy.port)
  const store = await openPostgresStore({ settings: { ...settings, connectionString: url.href }, fenceMs })
  t.teardown(() => store.close())
  const shown = new Map<string, AgentRecord>()
  list.push({ store, proxy, shown })
  await store.feed.agents.follow({
    load(all) {
      shown.clear()
      for (const one of all) shown.set(one.id, one)
      return undefined
    },
    change(key, now) {
      const done = inForce?.()
      const show = () => void (now === undefined ? shown.delete(key) : shown.set(key, now))
      if (done === undefined) show()
      return done?.then(show)
    },
  })
  await store.feed.policies.follow({ load: () => undefined, change: () => undefined })
  return { store, proxy, shown }
}

const serves = ({ store }: Member) => eventually(async () => store.fence.isOpen, Boolean)

async function fleet(t: Test, count: number): Promise<[Member, Member, Member]> {
  const settings = await createSchema(t)
  const members: Member[] = []
  for (let n = 0; n < count; n++) members.push(await join(t, settings))
  for (const member of members) await serves(member)
  const [first] = members
  await eventually(
    async () => first!.store.fleet().peers.length,
    known => known === count,
  )
  await first!.store.agents.insert(agent('a1'), 'h', entry('agent.register'))
  return members as [Member, Member, Member]
}

const set = ({ store }: Member, status: AgentRecord['status']) =>
  store.agents.update('a1', { status }, entry('agent.change'))

async function timed<T>(work: Promise<T>): Promise<{ readonly value: T; readonly ms: number }> {
  const start = performance.now()
  return { value: await work, ms: performance.now() - start }
}

/** Waits until every gateway has taken so many turns. */
async function turnsOfAll({ admin }: Settings, count: number): Promise<void> {
  const beats = new Map<string, Set<string>>()
  await eventually(async () => {
    const { rows } = await admin.query<{ id: string; beat: string }>('select id, beat from members')
    for (const { id, beat } of rows) beats.set(id, (beats.get(id) ?? new Set()).add(beat))
    return [...beats.values()].every(({ size }) => size > count)
  }, Boolean)
}

/** Nothing passes, and no connection breaks. */
function blackHole({ proxy }: Member): void {
  proxy.onSend = () => false
  proxy.answers = false
}

function heal({ proxy }: Member): void {
  proxy.onSend = () => true
  proxy.answers = true
  proxy.cut()
}

t.test('a change is in force in every gateway when it is answered, whoever made it', async t => {
  const members = await fleet(t, 3)
  const took: number[] = []
  for (let n = 0; n < 30; n++) {
    const status = n % 2 === 0 ? 'Revoked' : 'Active'
    const { ms } = await timed(set(members[n % 3]!, status))
    took.push(ms)
    t.strictSame(
      members.map(({ shown }) => shown.get('a1')?.status),
      [status, status, status],
    )
  }
  t.comment(`answered in ${Math.round(took.sort((a, b) => a - b)[15]!)} ms, at most ${Math.round(took.at(-1)!)}`)
})

t.test('a gateway in which a follower is slow is waited for', async t => {
  const settings = await createSchema(t)
  const quick = await join(t, settings)
  const released = Promise.withResolvers<void>()
  const slow = await join(t, settings, () => released.promise)
  await serves(quick)
  await serves(slow)
  await eventually(
    async () => quick.store.fleet().peers.length,
    known => known === 2,
  )
  let answered = false
  const write = quick.store.agents.insert(agent('a1'), 'h', entry('agent.register')).then(() => {
    answered = true
  })
  await eventually(
    async () => quick.shown.size,
    size => size === 1,
  )
  await turnsOfAll(settings, 4)
  t.equal(answered, false)
  released.resolve()
  await write
  t.equal(slow.shown.size, 1)
})

t.test(
  'a gateway that is cut off stops to serve before the others assume it, and serves again with the change',
  async t => {
    const [first, second, third] = await fleet(t, 3)
    blackHole(third)
    const { ms } = await timed(set(first, 'Revoked'))
    t.equal(third.store.fence.isOpen, false)
    t.equal(third.shown.get('a1')?.status, 'Active')
    t.equal(second.shown.get('a1')?.status, 'Revoked')
    t.ok(ms > fenceMs / 2, `${ms} ms`)
    t.equal(first.store.fence.isOpen && second.store.fence.isOpen, true)
    let atOpening: string | undefined
    heal(third)
    await eventually(async () => {
      atOpening = third.shown.get('a1')?.status
      return third.store.fence.isOpen
    }, Boolean)
    t.equal(third.shown.get('a1')?.status, 'Revoked')
    t.ok(atOpening !== undefined)
  },
)

t.test('a gateway that died is waited for once, and its row goes', async t => {
  const [first, second] = await fleet(t, 2)
  blackHole(second)
  await set(first, 'Revoked')
  t.equal(second.store.fence.isOpen, false)
  await eventually(
    async () => first.store.fleet().peers.length,
    known => known === 1,
  )
  const { ms } = await timed(set(first, 'Active'))
  t.ok(ms < fenceMs, `${ms} ms`)
  heal(second)
  await serves(second)
  t.equal(second.shown.get('a1')?.status, 'Active', 'it registers again, and has what it missed')
  await set(first, 'Revoked')
  t.equal(second.shown.get('a1')?.status, 'Revoked')
})

t.test('one that leaves is not waited for', async t => {
  const [first, second] = await fleet(t, 2)
  await second.store.close()
  t.equal(second.store.fence.isOpen, false)
  const { ms } = await timed(set(first, 'Revoked'))
  t.ok(ms < fenceMs, `${ms} ms`)
})

t.test('one that joins while an agent is changed never serves without the latest change', async t => {
  const settings = await createSchema(t)
  const first = await join(t, settings)
  await serves(first)
  await first.store.agents.insert(agent('a1'), 'h', entry('agent.register'))
  const others: Member[] = []
  const joining = (async () => {
    for (let n = 0; n < 4; n++) await serves(await join(t, settings, undefined, others))
  })()
  let joined = false
  void joining.then(() => {
    joined = true
  })
  let checked = 0
  for (let n = 0; !joined; n++) {
    const status = n % 2 === 0 ? 'Revoked' : 'Active'
    await set(first, status)
    for (const { store, shown } of others) {
      if (!store.fence.isOpen) continue
      checked += 1
      if (shown.get('a1')?.status !== status) t.fail(`serves with ${shown.get('a1')?.status} after ${status}`)
    }
  }
  await joining
  t.ok(checked > 0)
})

t.test('a change whose gateway loses the database right after the commit is answered once all are fenced', async t => {
  const [first, second] = await fleet(t, 2)
  blackHole(second)
  first.proxy.onSend = data => {
    if (!data.includes('notify')) return true
    blackHole(first)
    return false
  }
  const { value, ms } = await timed(set(first, 'Revoked'))
  t.match(value, { status: 'Revoked' })
  t.equal(first.store.fence.isOpen || second.store.fence.isOpen, false)
  t.ok(ms > fenceMs, `${ms} ms`)
  heal(first)
  await serves(first)
  t.equal(first.shown.get('a1')?.status, 'Revoked')
})

t.test(
  'without the database a gateway serves for its limit and no longer, and again soon after it is back',
  async t => {
    const [first, second] = await fleet(t, 2)
    const start = performance.now()
    blackHole(second)
    await eventually(
      async () => second.store.fence.isOpen,
      isOpen => !isOpen,
    )
    const ms = performance.now() - start
    t.ok(ms > fenceMs - 1_000, `${ms} ms`)
    t.equal(first.store.fence.isOpen, true)
    heal(second)
    await serves(second)
  },
)
