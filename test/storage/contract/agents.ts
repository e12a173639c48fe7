import type { Test } from 'tap'
import type { AgentStatus } from '../../../src/storage/store.ts'
import { actions, agent, type Engine, entry, trail } from './samples.ts'

export function agents(t: Test, engine: Engine): void {
  t.test('an agent reads back as it was stored, apart from its secret', async t => {
    const store = await engine(t)
    const stored = agent('a1', {
      roles: ['admin', 'reviewer'],
      policyName: 'p',
      externalSubject: 'sub|1',
      tags: { team: 'ö', __proto__: 'x' },
      trustValue: 1,
      createdAt: 1_763_712_000_123,
    })
    await store.agents.insert(stored, '$2b$10$hash', entry('agent.register'))
    t.strictSame(await store.agents.all(), [stored])
    t.equal(await store.agents.secretHash('a1'), '$2b$10$hash')
    t.equal(await store.agents.secretHash('a2'), undefined)
  })

  t.test('all agents come in order of creation', async t => {
    const store = await engine(t)
    for (const [id, createdAt] of [
      ['c', 2],
      ['b', 1],
      ['a', 2],
    ] as const)
      await store.agents.insert(agent(id, { createdAt }), 'h', entry('agent.register'))
    t.strictSame(
      (await store.agents.all()).map(each => each.id),
      ['b', 'a', 'c'],
    )
  })

  t.test('an id is taken once, and the second attempt leaves no audit entry', async t => {
    const store = await engine(t)
    await store.agents.insert(agent('a1'), 'h', entry('agent.register'))
    t.equal(await store.agents.insert(agent('a1', { name: 'other' }), 'h2', entry('agent.register')), 'exists')
    t.equal(await store.agents.secretHash('a1'), 'h')
    t.strictSame(await actions(store), ['agent.register'])
  })

  t.test('a judgement counts only for the status that was read, and forgets nothing until trust is set', async t => {
    const store = await engine(t)
    await store.agents.insert(agent('a1', { trustValue: 0.5, trustAt: 1 }), 'h', entry('agent.register'))
    const read = { status: 'Active', trustValue: 0.5, trustAt: 1, standing: null } as const
    t.strictSame(await store.agents.trust('a1'), read)
    t.equal(await store.agents.trust('a2'), undefined)
    const judged = { status: 'Active', trustValue: 0.1 + 0.2, trustAt: 2, standing: '{"gained":1}' } as const
    t.match(await store.agents.judge('a1', read, judged, entry('agent.trust')), { trustValue: 0.1 + 0.2, trustAt: 2 })
    t.equal(await store.agents.judge('a1', read, judged, entry('agent.trust')), 'stale')
    t.equal(await store.agents.judge('a2', read, judged, entry('agent.trust')), 'notFound')
    t.strictSame(await store.agents.trust('a1'), judged)
    for (const other of [{ trustValue: 0.3 }, { trustAt: 1 }, { standing: null }, { status: 'Inactive' }] as const) {
      t.equal(await store.agents.judge('a1', { ...judged, ...other }, judged, entry('agent.trust')), 'stale')
    }
    await store.agents.update('a1', { policyName: 'p' }, entry('agent.policy'))
    t.strictSame(await store.agents.trust('a1'), judged)
    await store.agents.update('a1', { trustValue: 0.35, trustAt: 3 }, entry('agent.liftQuarantine'))
    t.strictSame(await store.agents.trust('a1'), { status: 'Active', trustValue: 0.35, trustAt: 3, standing: null })
    t.strictSame(await actions(store), ['agent.register', 'agent.trust', 'agent.policy', 'agent.liftQuarantine'])
  })

  t.test('of judgements at the same time, each counts on top of the others', async t => {
    const store = await engine(t)
    await store.agents.insert(agent('a1', { trustValue: 0, trustAt: 0 }), 'h', entry('agent.register'))
    const add = async (): Promise<void> => {
      const read = await store.agents.trust('a1')
      if (read === undefined) throw new Error('there is no agent')
      const judged = { ...read, trustAt: read.trustAt + 1 }
      if ((await store.agents.judge('a1', read, judged, entry('agent.trust'))) === 'stale') await add()
    }
    await Promise.all(Array.from({ length: 12 }, add))
    t.match(await store.agents.trust('a1'), { trustAt: 12 })
  })

  t.test('a reset changes the agent and draws what the keys of tokens are derived with, for followers too', async t => {
    const store = await engine(t)
    await store.agents.insert(agent('a1', { status: 'Quarantined' }), 'h', entry('agent.register'))
    t.strictSame(await store.tokens.all(), [])
    const told: string[] = []
    const note = (epoch: string | undefined) => void told.push(epoch ?? 'none')
    t.teardown(await store.feed.tokens.follow({ load: ([epoch]) => note(epoch), change: (_, epoch) => note(epoch) }))
    for (const secretHash of ['h1', 'h2'])
      t.match(await store.agents.reset('a1', { status: 'Active', secretHash }, entry('admin.reset')), {
        status: 'Active',
      })
    const [epoch, ...more] = await store.tokens.all()
    t.match(epoch, /^[0-9a-f]{32}$/)
    t.strictSame([more, told.length, told[0], told[2]], [[], 3, 'none', epoch])
    t.not(told[1], told[2])
    t.strictSame(await actions(store), ['agent.register', 'admin.reset', 'admin.reset'])
  })

  t.test('what cannot be recorded is not done, and what is done at the same time is', async t => {
    const store = await engine(t)
    const unrecordable = entry('agent.register', { details: { number: 1n } })
    const results = await Promise.allSettled([
      store.agents.insert(agent('a1'), 'h', entry('agent.register')),
      store.agents.insert(agent('a2'), 'h', unrecordable),
      store.agents.insert(agent('a3'), 'h', entry('agent.register')),
    ])
    t.strictSame(
      results.map(result => result.status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    t.strictSame(
      (await store.agents.all()).map(each => each.id),
      ['a1', 'a3'],
    )
    t.strictSame(
      (await trail(store)).map(record => record.seq),
      [1, 2],
    )
  })

  t.test('a change is recorded with before and after, and never with the hash', async t => {
    const store = await engine(t)
    await store.agents.insert(agent('a1'), 'h', entry('agent.register'))
    const change = { status: 'Quarantined', policyName: 'p', secretHash: 'new-hash' } as const
    const changed = await store.agents.update('a1', change, entry('agent.change', { details: { why: 'x' } }))
    t.strictSame(changed, agent('a1', { status: 'Quarantined', policyName: 'p' }))
    t.strictSame(await store.agents.all(), [changed])
    t.equal(await store.agents.secretHash('a1'), 'new-hash')
    const [, record] = await trail(store)
    t.strictSame(record?.details, {
      why: 'x',
      before: { status: 'Active', policyName: null },
      after: { status: 'Quarantined', policyName: 'p' },
    })
    t.notMatch(JSON.stringify(record), /new-hash/)
  })

  t.test('every field that can change does', async t => {
    const store = await engine(t)
    await store.agents.insert(agent('a1'), 'h', entry('agent.register'))
    const change = {
      roles: ['auditor'],
      externalSubject: 's',
      trustValue: 0.25,
      trustAt: 5,
      recording: { mode: 'samples', until: 9 },
    } as const
    await store.agents.update('a1', change, entry('agent.change'))
    t.strictSame(await store.agents.all(), [agent('a1', change)])
  })

  t.test('a change from a status the agent is not in does nothing', async t => {
    const store = await engine(t)
    await store.agents.insert(agent('a1', { status: 'Revoked' }), 'h', entry('agent.register'))
    const change = { status: 'Active' } as const
    t.equal(await store.agents.update('a1', change, entry('agent.activate'), ['Inactive', 'Quarantined']), 'wrongState')
    t.equal(await store.agents.update('a1', change, entry('agent.activate'), []), 'wrongState')
    t.equal(await store.agents.update('a2', change, entry('agent.activate')), 'notFound')
    t.strictSame(await store.agents.all(), [agent('a1', { status: 'Revoked' })])
    t.strictSame(await actions(store), ['agent.register'])
  })

  t.test('a subject of the identity provider is bound to one agent', async t => {
    const store = await engine(t)
    const insert = (id: string, externalSubject: string | null) =>
      store.agents.insert(agent(id, { externalSubject }), 'h', entry('agent.register'))
    t.equal(await insert('a1', 's'), 'stored')
    t.equal(await insert('a2', 's'), 'subjectTaken')
    t.equal(await insert('a2', null), 'stored')
    t.equal(await insert('a3', null), 'stored')
    const bind = (id: string, externalSubject: string | null) =>
      store.agents.update(id, { externalSubject }, entry('agent.subject'))
    t.equal(await bind('a2', 's'), 'subjectTaken')
    t.match(await bind('a1', 's'), { externalSubject: 's' }, 'its own stays its own')
    const both = await Promise.all([bind('a2', 'new'), bind('a3', 'new')])
    t.equal(both.filter(result => result === 'subjectTaken').length, 1)
    await store.agents.remove('a1', entry('agent.remove'))
    t.match(await bind('a2', 's'), { externalSubject: 's' }, 'free again after removal')
    t.equal((await actions(store)).filter(action => action === 'agent.subject').length, 3)
  })

  t.test('a removed agent is gone, and removing it again says so', async t => {
    const store = await engine(t)
    await store.agents.insert(agent('a1'), 'h', entry('agent.register'))
    t.equal(await store.agents.remove('a1', entry('agent.delete')), 'removed')
    t.equal(await store.agents.remove('a1', entry('agent.delete')), 'notFound')
    t.strictSame(await store.agents.all(), [])
    t.strictSame(await actions(store), ['agent.register', 'agent.delete'])
  })

  t.test('the last active admin stays one', async t => {
    const store = await engine(t)
    await store.agents.insert(agent('a1', { roles: ['agent', 'admin'] }), 'h', entry('agent.register'))
    await store.agents.insert(agent('a2', { roles: ['admin'], status: 'Inactive' }), 'h', entry('agent.register'))
    await store.agents.insert(agent('a3', { roles: ['auditor'], name: '"admin"' }), 'h', entry('agent.register'))
    const status = (id: string, to: AgentStatus) => store.agents.update(id, { status: to }, entry('agent.status'))
    for (const to of ['Inactive', 'Quarantined', 'Revoked'] as const) t.equal(await status('a1', to), 'lastAdmin', to)
    t.equal(await store.agents.update('a1', { roles: ['agent'] }, entry('agent.roles')), 'lastAdmin')
    t.equal(await store.agents.remove('a1', entry('agent.remove')), 'lastAdmin')
    t.match(await store.agents.update('a1', { roles: ['admin'] }, entry('agent.roles')), { roles: ['admin'] })
    t.match(await status('a2', 'Quarantined'), { status: 'Quarantined' }, 'it is no active admin')
    t.match(await status('a2', 'Active'), { status: 'Active' })
    t.match(await status('a1', 'Revoked'), { status: 'Revoked' })
    t.equal(await store.agents.remove('a1', entry('agent.remove')), 'removed')
    t.equal(await store.agents.remove('a2', entry('agent.remove')), 'lastAdmin')
  })

  t.test('keys are kept with their agent, and go with it', async t => {
    const store = await engine(t)
    const key = (id: string) => ({ id, name: `key ${id}`, hash: `hash ${id}`, createdAt: 1_000, expiresAt: null })
    for (const id of ['a1', 'a2']) await store.agents.insert(agent(id), 'h', entry('agent.register'))
    t.equal(await store.agents.addKey('a3', key('k0'), 2, entry('agent.addKey')), 'notFound')
    t.equal(await store.agents.addKey('a1', key('k1'), 2, entry('agent.addKey')), 'stored')
    const second = { ...key('k2'), createdAt: 2_000, expiresAt: 9_000 }
    t.equal(await store.agents.addKey('a1', second, 2, entry('agent.addKey')), 'stored')
    t.equal(await store.agents.addKey('a1', key('k1'), 3, entry('agent.addKey')), 'exists')
    t.equal(await store.agents.addKey('a1', key('k3'), 2, entry('agent.addKey')), 'full')
    t.match(await store.agents.update('a1', { policyName: 'p' }, entry('agent.policy')), { keys: [key('k1'), second] })
    t.strictSame(
      (await store.agents.all()).map(({ keys }) => keys),
      [[key('k1'), second], []],
    )
    t.equal(await store.agents.removeKey('a2', 'k1', entry('agent.removeKey')), false)
    t.equal(await store.agents.removeKey('a1', 'k1', entry('agent.removeKey')), true)
    t.match(await store.agents.update('a1', { policyName: 'q' }, entry('agent.policy')), { keys: [second] })
    await store.agents.noteKeyUses([
      { keyId: 'k2', at: 5_000 },
      { keyId: 'gone', at: 5_000 },
    ])
    await store.agents.noteKeyUses([{ keyId: 'k2', at: 4_000 }])
    t.strictSame(await store.agents.keyUses('a1'), [{ keyId: 'k2', at: 5_000 }], 'the latest')
    t.strictSame(await store.agents.keyUses('a2'), [])
    t.equal(await store.agents.remove('a1', entry('agent.remove')), 'removed')
    await store.agents.insert(agent('a1'), 'h', entry('agent.register'))
    t.equal(await store.agents.addKey('a1', second, 2, entry('agent.addKey')), 'stored')
    const told = ['addKey', 'addKey', 'policy', 'removeKey', 'policy', 'remove', 'register', 'addKey'].map(
      what => `agent.${what}`,
    )
    t.strictSame((await actions(store)).slice(2), told)
  })
}
