import type { Test } from 'tap'
import type { GrantRecord } from '../../../src/storage/store.ts'
import { actions, type Engine, entry, suspend, trail } from './samples.ts'

/** Good for 3 uses until 2,000. */
function grant(id: string, over: Partial<GrantRecord> = {}): GrantRecord {
  return {
    id,
    agentId: 'a1',
    policyName: 'p',
    rule: 'orders',
    method: 'POST',
    origin: 'https://api.example:443',
    path: '/orders/*',
    maxUses: 3,
    uses: 0,
    hitlId: 'h1',
    credentials: '',
    grantedBy: 'r1',
    createdAt: 1_000,
    expiresAt: 2_000,
    ...over,
  }
}

export function grants(t: Test, engine: Engine): void {
  t.test('of more uses at once than a grant has, exactly that many succeed, and each is recorded', async t => {
    const store = await engine(t)
    await store.grants.insert(grant('g1'), entry('grant.create'))
    const used = await Promise.all(
      Array.from({ length: 10 }, () => store.grants.use('g1', { now: 1_500 }, entry('grant.use'))),
    )
    const counts = used.map(each => (typeof each === 'string' ? each : each?.uses))
    t.strictSame(counts.filter(count => count !== undefined).sort(), [1, 2, 3])
    t.strictSame(await store.grants.list(1_500), [])
    t.strictSame((await trail(store)).at(-1)?.details, { uses: 3, maxUses: 3 })
    t.equal((await trail(store)).length, 4)
  })

  t.test('a grant that expired or is not there is not used', async t => {
    const store = await engine(t)
    await store.grants.insert(grant('g1'), entry('grant.create'))
    t.equal(await store.grants.use('g1', { now: 2_000 }, entry('grant.use')), undefined)
    t.equal(await store.grants.use('g2', { now: 1_500 }, entry('grant.use')), undefined)
    t.strictSame(await actions(store), ['grant.create'])
  })

  t.test('a key that a grant used names that sending: no grant and no held request takes it again', async t => {
    const store = await engine(t)
    await store.grants.insert(grant('g1', { maxUses: 9 }), entry('grant.create'))
    const key = { agentId: 'a1', key: 'k', expiresAt: 1_900 }
    const use = (now: number, more: object = {}) =>
      store.grants.use('g1', { now, key: { ...key, ...more } }, entry('u'))
    const both = await Promise.all([use(1_500), use(1_500)])
    t.equal(both.filter(one => one === 'keyUsed').length, 1)
    t.match(
      both.find(one => one !== 'keyUsed'),
      { uses: 1 },
    )
    t.equal(await suspend(store, 'h1', { idempotencyKey: 'k' }), 'keyUsed')
    t.strictSame(await store.hitl.keyHolder('a1', 'k', 1_500), { hitlId: null })
    t.equal(await store.hitl.keyHolder('a1', 'k', 1_900), undefined, 'until it expires')
    t.equal(await store.hitl.keyHolder('a2', 'k', 1_500), undefined, 'of another agent')
    t.match(await use(1_500, { agentId: 'a2' }), { uses: 2 })
    t.match(await use(1_950, { expiresAt: 1_999 }), { uses: 3 }, 'an expired one is free')
    t.equal(await suspend(store, 'h2', { idempotencyKey: 'held' }), 'stored')
    t.strictSame(await store.hitl.keyHolder('a1', 'held', 1_500), { hitlId: 'h2' })
    t.equal(await use(1_500, { key: 'held' }), 'keyHeld')
    t.equal(await store.grants.prune(1_950, 10), 1)
    t.equal((await store.hitl.keyHolder('a1', 'k', 1_950)) === undefined, false, 'the renewed one stays')
  })

  t.test('a key is freed by the use that took it, and by no other', async t => {
    const store = await engine(t)
    await store.grants.insert(grant('g1', { maxUses: 9 }), entry('grant.create'))
    const key = { agentId: 'a1', key: 'k', expiresAt: 1_600 }
    await store.grants.use('g1', { now: 1_500, key }, entry('u'))
    await store.grants.releaseKey({ ...key, agentId: 'a2' })
    await store.grants.releaseKey({ ...key, key: 'l' })
    t.strictSame(await store.hitl.keyHolder('a1', 'k', 1_500), { hitlId: null })
    await store.grants.releaseKey(key)
    t.equal(await store.hitl.keyHolder('a1', 'k', 1_500), undefined)
    const next = { ...key, expiresAt: 1_900 }
    await store.grants.use('g1', { now: 1_700, key: next }, entry('u'))
    await store.grants.releaseKey(key)
    t.strictSame(await store.hitl.keyHolder('a1', 'k', 1_800), { hitlId: null }, 'another use has it now')
  })

  t.test('a use that is given back is counted no more, and frees its key', async t => {
    const store = await engine(t)
    await store.grants.insert(grant('g1', { maxUses: 1 }), entry('grant.create'))
    const key = { agentId: 'a1', key: 'k', expiresAt: 1_900 }
    await store.grants.use('g1', { now: 1_500, key }, entry('u'))
    t.equal(await store.grants.use('g1', { now: 1_500 }, entry('u')), undefined)
    await store.grants.giveBack('g1', key, entry('back'))
    t.strictSame((await trail(store)).at(-1)?.details, { uses: 0, maxUses: 1 })
    t.match(await store.grants.use('g1', { now: 1_500, key }, entry('u')), { uses: 1 })
    await store.grants.giveBack('g1', undefined, entry('back'))
    await store.grants.giveBack('g1', undefined, entry('never'))
    await store.grants.giveBack('g2', key, entry('never'))
    t.equal(await store.hitl.keyHolder('a1', 'k', 1_500), undefined, 'also of a grant that is gone')
    t.match(await store.grants.list(1_500), [{ uses: 0 }])
    t.strictSame(
      (await actions(store)).filter(action => action === 'never'),
      [],
    )
  })

  t.test('active grants read back as stored, oldest first, of all agents or one', async t => {
    const store = await engine(t)
    const g2 = grant('g2')
    const g1 = grant('g1', { createdAt: 1_001, agentId: 'a2' })
    for (const each of [g1, g2, grant('g3', { expiresAt: 1_400 })]) await store.grants.insert(each, entry('g'))
    t.strictSame(await store.grants.list(1_500), [g2, g1])
    t.strictSame(await store.grants.active(1_500, 'a2'), [g1])
  })

  t.test('of two grants with one id the first is stored, with its entry', async t => {
    const store = await engine(t)
    t.equal(await store.grants.insert(grant('g1'), entry('g')), true)
    t.equal(await store.grants.insert(grant('g1', { maxUses: 9 }), entry('g')), false)
    t.strictSame(await store.grants.list(1_500), [grant('g1')])
    t.equal((await actions(store)).filter(action => action === 'g').length, 1)
  })

  t.test('a grant is removed once, and pruning removes what is of no more use', async t => {
    const store = await engine(t)
    for (const over of [{}, { expiresAt: 1_500 }, { maxUses: 1, uses: 1 }, { expiresAt: 1_501 }])
      await store.grants.insert(grant(JSON.stringify(over), over), entry('grant.create'))
    t.equal(await store.grants.prune(1_500, 1), 1)
    t.equal(await store.grants.prune(1_500, 10), 1)
    t.equal((await store.grants.list(1_500)).length, 2)
    t.equal(await store.grants.remove('{}', entry('grant.revoke')), true)
    t.equal(await store.grants.remove('{}', entry('grant.revoke')), false)
    t.equal((await actions(store)).filter(action => action === 'grant.revoke').length, 1)
  })
}
