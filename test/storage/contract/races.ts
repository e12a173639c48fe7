import type { Test } from 'tap'
import { verifyTrail } from '../../../src/audit/trail.ts'
import type { AgentRecord, Store } from '../../../src/storage/store.ts'
import { agent, approve, deny, type Engine, entry, lapse, pending, roomy, sealed, suspend, trail } from './samples.ts'

/** Calls that come over two stores on the same data at the same time. */
export function races(t: Test, engine: Engine, other: Store): void {
  const over = <T>(count: number, store: Store, call: (store: Store, n: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: count }, (_, n) => call(n % 2 === 0 ? store : other, n)))

  t.test('of approvals, denials and withdrawals over two stores one wins each item', async t => {
    const store = await engine(t)
    const ids = Array.from({ length: 12 }, (_, n) => `h${n}`)
    for (const id of ids) await suspend(store, id)
    const results = await over(ids.length * 8, store, async (on, n): Promise<string | object> => {
      const id = ids[n % ids.length]!
      if (n % 3 === 0) return deny(on, id)
      if (n % 3 === 1)
        return on.hitl.withdraw(id, { agentId: 'a1', now: 1_500 }, entry('hitl.withdraw', { subject: id }))
      return approve(on, id)
    })
    const won = results.filter(result => typeof result === 'object' && !('lost' in result))
    t.equal(won.length, ids.length)
    const decided = (await trail(store)).filter(({ action }) => action !== 'hitl.suspend')
    t.strictSame(decided.map(({ subject }) => subject).sort(), [...ids].sort())
    t.equal(await store.hitl.countPending(1_500), 0)
  })

  t.test('two approvals at the same time both count', async t => {
    const store = await engine(t)
    for (let n = 0; n < 10; n++) {
      await suspend(store, `h${n}`, { approvalsNeeded: 2 })
      const both = await over(2, store, (on, who) => approve(on, `h${n}`, { reviewer: `r${who}` }))
      t.strictSame(both.flatMap(result => Object.keys(result)).sort(), ['claimed', 'waiting'])
    }
  })

  t.test('limits hold exactly, and refused requests leave nothing', async t => {
    const store = await engine(t)
    const limits = { ...roomy, maxPending: 30, maxPendingOfAgent: 7 }
    const results = await over(72, store, (on, n) =>
      on.hitl.insert(pending(`h${n}`, { agentId: `a${n % 6}` }), sealed, limits, entry('hitl.suspend')),
    )
    t.equal(results.filter(result => result === 'stored').length, 30)
    t.equal(await store.hitl.countPending(1_500), 30)
    const held = Map.groupBy(await store.hitl.pending(1_500), ({ agentId }) => agentId)
    t.ok([...held.values()].every(({ length }) => length <= 7))
    t.equal((await trail(store)).length, 30)
    t.equal(await store.hitl.sealed('h-unknown'), undefined)
  })

  t.test('an idempotency key names one request, held or passed by a grant', async t => {
    const store = await engine(t)
    const grant = {
      ...{ id: 'g1', agentId: 'a1', policyName: 'p', rule: '', method: 'POST', origin: 'o', path: '/', maxUses: 99 },
      ...{ uses: 0, hitlId: 'h', credentials: '', grantedBy: 'r', createdAt: 1_000, expiresAt: 9_000 },
    }
    await store.grants.insert(grant, entry('grant.create'))
    for (const key of ['k1', 'k2', 'k3']) {
      const results = await over(16, store, async (on, n): Promise<unknown> => {
        if (n % 4 < 2) return suspend(on, `${key}-${n}`, { idempotencyKey: key })
        return on.grants.use('g1', { now: 1_500, key: { agentId: 'a1', key, expiresAt: 9_000 } }, entry('grant.use'))
      })
      const sent = results.filter(result => result === 'stored' || (typeof result === 'object' && 'uses' in result!))
      t.equal(sent.length, 1, key)
    }
    const same = await over(8, store, (on, n) => suspend(on, `s${n}`, { repeatDigest: 'same' }))
    t.equal(same.filter(result => result === 'stored').length, 1, 'nor is a request held twice that another one joins')
  })

  t.test('an id and a subject are registered once', async t => {
    const store = await engine(t)
    const insert = (on: Store, id: string, externalSubject: string | null) =>
      on.agents.insert(agent(id, { externalSubject }), 'h', entry('agent.register'))
    const ids = await over(8, store, on => insert(on, 'a1', null))
    t.strictSame(ids.sort(), [...Array.from({ length: 7 }, () => 'exists'), 'stored'])
    const subjects = await over(8, store, (on, n) => insert(on, `b${n}`, 's'))
    t.equal(subjects.filter(result => result === 'stored').length, 1)
    const bound = await over(8, store, (on, n) => {
      return insert(on, `c${n}`, null).then(() =>
        on.agents.update(`c${n}`, { externalSubject: 'other' }, entry('agent.subject')),
      )
    })
    t.equal(bound.filter(result => result !== 'subjectTaken').length, 1)
  })

  t.test('an update returns the agent as it is then, and never one from before a revocation', async t => {
    const store = await engine(t)
    for (let n = 0; n < 10; n++) {
      const id = `a${n}`
      await store.agents.insert(agent(id), 'h', entry('agent.register'))
      const seen: AgentRecord[] = []
      const end = await store.feed.agents.follow({
        load: () => undefined,
        change(key, now) {
          if (key === id && now !== undefined) seen.push(now)
          return undefined
        },
      })
      const [revoked, renamed] = await Promise.all([
        other.agents.update(id, { status: 'Revoked' }, entry('agent.revoke')),
        store.agents.update(id, { policyName: 'p' }, entry('agent.policy')),
      ])
      end()
      t.match(revoked, { status: 'Revoked' })
      t.match(renamed, { policyName: 'p' })
      const last = await store.agents.all().then(all => all.find(one => one.id === id))
      t.match(last, { status: 'Revoked', policyName: 'p' })
      const order = (await trail(store)).filter(({ action }) => action !== 'agent.register').slice(-2)
      const isRevokedFirst = order[0]?.action === 'agent.revoke'
      t.match(renamed, { status: isRevokedFirst ? 'Revoked' : 'Active' })
    }
  })

  t.test('admins who remove each other at the same time leave one', async t => {
    const store = await engine(t)
    const ways: readonly ((on: Store, id: string) => Promise<unknown>)[] = [
      (on, id) => on.agents.update(id, { status: 'Inactive' }, entry('agent.deactivate'), ['Active']),
      (on, id) => on.agents.update(id, { roles: ['auditor'] }, entry('agent.roles')),
      (on, id) => on.agents.remove(id, entry('agent.remove')),
    ]
    for (let n = 0; n < 9; n++) {
      const ids = [`x${n}`, `y${n}`]
      for (const id of ids) await store.agents.insert(agent(id, { roles: ['agent', 'admin'] }), 'h', entry('a'))
      for (const { id } of await store.agents.all()) {
        if (!ids.includes(id)) await store.agents.update(id, { status: 'Revoked' }, entry('agent.revoke'))
      }
      const both = await over(2, store, (on, which) => ways[(n + which * (n % 2)) % 3]!(on, ids[which]!))
      t.equal(both.filter(result => result === 'lastAdmin').length, 1)
      const active = (await store.agents.all()).filter(
        ({ status, roles }) => status === 'Active' && roles.includes('admin'),
      )
      t.equal(active.length, 1)
    }
  })

  t.test('expired and lapsed requests are given to one caller each', async t => {
    const store = await engine(t)
    for (let n = 0; n < 20; n++) await suspend(store, `e${n}`)
    for (let n = 0; n < 20; n++) {
      await suspend(store, `l${n}`, { expiresAt: 9_000 })
      await approve(store, `l${n}`)
    }
    const expired = (await over(8, store, on => on.hitl.expire(2_000, 10))).flat()
    expired.push(...(await store.hitl.expire(2_000, 100)))
    t.equal(expired.length, 20)
    t.equal(new Set(expired).size, 20)
    const lapsed = (await over(8, store, on => lapse(on, 3_000))).flat()
    t.equal(lapsed.length, 20)
    t.equal(new Set(lapsed).size, 20)
  })

  t.test(
    'every change reaches every follower, in the same order and without a gap, none of a write that failed',
    async t => {
      const store = await engine(t)
      await store.agents.insert(agent('a1'), 'h', entry('agent.register'))
      const told = new Map<Store, string[]>([
        [store, []],
        [other, []],
      ])
      for (const [on, list] of told) {
        const end = await on.feed.agents.follow({
          load: () => undefined,
          change(key, now) {
            list.push(`${key} ${now?.policyName}`)
            return undefined
          },
        })
        t.teardown(end)
      }
      await Promise.allSettled([
        over(30, store, (on, n) => on.agents.update('a1', { policyName: `p${n}` }, entry('agent.policy'))),
        store.agents.update('a1', { policyName: 'never' }, entry('agent.policy', { details: { big: 1n } })),
        other.agents.update('a1', { policyName: 'never' }, entry('agent.policy'), ['Revoked']),
      ])
      // In force on the store that made it; a last one on each shows what the other one made.
      await store.agents.update('a1', { policyName: 'last' }, entry('agent.policy'))
      await other.agents.update('a1', { policyName: 'very last' }, entry('agent.policy'))
      await store.agents.update('a1', { policyName: 'end' }, entry('agent.policy'))
      await other.agents.update('a1', { policyName: 'end' }, entry('agent.policy'))
      const recorded = (await trail(store)).slice(1).map(({ details }) => {
        const { policyName } = details['after'] as AgentRecord
        return `a1 ${policyName}`
      })
      // Under load some of those that came at once are given up.
      t.ok(recorded.length > 4)
      t.strictSame(told.get(other), recorded)
      t.strictSame(told.get(store)?.slice(0, recorded.length - 1), recorded.slice(0, -1))
      t.match(await verifyTrail(store.audit), { ok: true, entries: recorded.length + 1 })
    },
  )
}
