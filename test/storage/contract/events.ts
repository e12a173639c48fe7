import type { Test } from 'tap'
import type { StoredEvent } from '../../../src/storage/events.ts'
import type { Store } from '../../../src/storage/store.ts'
import { eventually } from '../../fixtures/gateway.ts'
import { agent, approve, deny, type Engine, entry, lapse, settle, suspend } from './samples.ts'

/** The events that a store tells from now on. */
async function follow(t: Test, store: Store): Promise<StoredEvent[]> {
  const told: StoredEvent[] = []
  const end = await store.feed.events.follow({
    load: () => undefined,
    change(_, event) {
      if (event !== undefined) told.push(event)
      return undefined
    },
  })
  t.teardown(end)
  return told
}

const told = (events: readonly StoredEvent[], count: number) =>
  eventually(
    async () => events,
    ({ length }) => length >= count,
  )

export function events(t: Test, engine: Engine, other: Store): void {
  t.test(
    'each commit publishes its events, in one order, to every gateway; a lost or failed write publishes none',
    async t => {
      const store = await engine(t)
      const here = await follow(t, store)
      const there = await follow(t, other)
      await suspend(store, 'h1', { approvalsNeeded: 2 })
      await approve(store, 'h1')
      await approve(store, 'h1')
      await store.hitl.extend('h1', { now: 1_500, expiresAt: 3_000 }, entry('hitl.extend', { actor: 'r3' }))
      await approve(store, 'h1', { reviewer: 'r2' })
      await deny(store, 'h1')
      await store.hitl.release('h1', 1, entry('hitl.release', { at: 1_501, details: { why: 'denied' } }))
      await store.hitl.release('h1', 1, entry('hitl.release'))
      await t.rejects(
        store.hitl.deny(
          'h1',
          { reviewer: 'r1', comment: null, now: 1_500 },
          entry('hitl.deny', { details: { no: 1n } }),
        ),
      )
      await deny(store, 'h1')
      await suspend(store, 'h2')
      await store.hitl.withdraw(
        'h2',
        { agentId: 'a1', now: 1_500 },
        entry('hitl.withdraw', { details: { cause: 'left' } }),
      )
      await suspend(store, 'h3')
      await approve(store, 'h3')
      await lapse(store, 1_600)
      await approve(store, 'h3', { resend: true, now: 1_700, leaseUntil: 1_800 })
      await settle(store, 'h3', 2, 'completed')
      await suspend(store, 'h4')
      await store.hitl.expire(2_500, 10)
      const all = [
        ['pending', 'h1', { agentId: 'a1', expiresAt: 2_000, summary: '{"id":"h1"}' }],
        ['approval', 'h1', { agentId: 'a1', by: 'r1', approvedBy: ['r1'], approvalsNeeded: 2 }],
        ['extended', 'h1', { agentId: 'a1', by: 'r3', expiresAt: '1970-01-01T00:00:03.000Z' }],
        ['approved', 'h1', { agentId: 'a1', by: 'r2', resend: false }],
        ['released', 'h1', { agentId: 'a1', why: 'denied' }],
        ['denied', 'h1', { agentId: 'a1', by: 'r1' }],
        ['pending', 'h2', {}],
        ['withdrawn', 'h2', { agentId: 'a1', cause: 'left' }],
        ['pending', 'h3', {}],
        ['approved', 'h3', { by: 'r1', resend: false }],
        ['unknown', 'h3', { agentId: 'a1' }],
        ['approved', 'h3', { by: 'r1', resend: true }],
        ['completed', 'h3', { agentId: 'a1', responseStatus: 201 }],
        ['pending', 'h4', {}],
        ['expired', 'h4', { agentId: 'a1' }],
      ]
      await told(here, all.length)
      t.match(
        here.map(({ type, hitlId, data }) => [type, hitlId, data]),
        all,
      )
      t.strictSame(await told(there, all.length), here)
      t.match(
        here.slice(0, 6).map(({ at }) => at),
        [1_000, 1_500, 1_500, 1_500, 1_501, 1_500],
      )
      t.ok(here.every(({ seq }, index) => index === 0 || seq > here[index - 1]!.seq))
    },
  )

  t.test(
    'quarantines by the gateway and changed tools are published, and a late follower gets nothing old',
    async t => {
      const store = await engine(t)
      const here = await follow(t, store)
      await store.agents.insert(agent('a1'), 'hash', entry('agent.register'))
      const caused = entry('agent.quarantine', { details: { cause: 'trust' } })
      await store.agents.update('a1', { status: 'Quarantined' }, caused)
      await store.agents.update('a1', { status: 'Active' }, entry('agent.liftQuarantine'))
      const read = await store.agents.trust('a1')
      if (read === undefined) throw new Error('there is no agent')
      await store.agents.judge('a1', read, { ...read, status: 'Quarantined' }, caused)
      const seen = { agentId: 'a1', server: 's', digests: {}, at: 1_000 }
      const change = entry('mcp.toolChanged', { details: { server: 's', tools: ['x'], count: 1 } })
      const limits = { maxServers: 10, maxBytes: 1_000 }
      await store.tools.keep(seen, limits)
      await store.tools.keep(seen, limits, change)
      await told(here, 2)
      const late = await follow(t, store)
      await suspend(store, 'h1')
      await told(late, 1)
      t.match(here, [
        { type: 'quarantined', hitlId: null, data: { agentId: 'a1', cause: 'trust' } },
        { type: 'toolChanged', hitlId: null, data: { agentId: 'a1', server: 's', tools: ['x'], count: 1 } },
        { type: 'pending' },
      ])
      t.strictSame(
        late.map(({ type }) => type),
        ['pending'],
      )
    },
  )
}
