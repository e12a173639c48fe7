import t, { type Test } from 'tap'
import { createGrants, type Grants, matchesPath, type UsedGrant } from '../../src/hitl/grants.ts'
import type { GrantTerms } from '../../src/hitl/model.ts'
import {
  agent,
  code,
  type Desk,
  type HeldOptions,
  held,
  openDesk,
  otherAgent,
  suspended,
  verdict,
} from '../fixtures/hitl.ts'
import { testdir } from '../fixtures/testdir.ts'

/** A desk with one grant given, and the id that the approval answered. */
async function granted(t: Test, terms: GrantTerms, options: HeldOptions = {}) {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const answer = await desk.queue.approve(await suspended(desk, options), { ...verdict(), grant: terms })
  const rawHeaders = 'rawHeaders' in answer ? answer.rawHeaders : []
  await desk.queue.idle()
  return { desk, grants: createGrants(desk), id: rawHeaders[rawHeaders.indexOf('Gateway-Hitl-Grant') + 1] }
}

const uses = async (grants: Grants, options: HeldOptions = {}) => (await grants.use(held(options))) !== undefined
const lastEntry = async (desk: Desk) => (await desk.store.audit.list({ page: 1, pageSize: 1 })).items[0]

t.test('a grant lets the same kind of request pass as often as it says, each use on record', async t => {
  const { desk, grants, id } = await granted(t, { minutes: 10, maxUses: 2 })
  t.match(await grants.list(), [{ id, agentId: 'agent-1', rule: 'refunds', path: '/v1/refunds', uses: 0, maxUses: 2 }])
  t.match(await grants.use(held({ body: 'other', url: 'https://api.shop.example/v1/refunds?x=1' })), {
    grant: { id, uses: 1 },
  })
  t.match(await lastEntry(desk), {
    action: 'hitl.grant.use',
    actor: 'agent-1',
    subject: id,
    requestId: 'req-1',
    details: { path: '/v1/refunds', uses: 1, grantedBy: 'reviewer-1' },
  })
  t.ok(await uses(grants))
  t.notOk(await uses(grants))
  t.strictSame(await grants.list(), [])
})

t.test('of many requests at once no more pass than the grant says', async t => {
  const { grants } = await granted(t, { minutes: 10, maxUses: 7 })
  const passed = await Promise.all(Array.from({ length: 50 }, () => uses(grants)))
  t.equal(passed.filter(Boolean).length, 7)
})

t.test('a key that a grant used is refused and not left to the queue: it may be freed by then', async t => {
  const { grants } = await granted(t, { minutes: 10, maxUses: 7 })
  const options = { idempotencyKey: 'k' }
  const used = await grants.use(held(options))
  t.equal(code(await grants.use(held(options))), 'already_exists')
  await grants.giveBack(used as UsedGrant, 'req-2')
  t.match(await grants.use(held(options)), { grant: { uses: 1 } })
})

t.test('of an agent that leaves again and again only some uses are given back', async t => {
  const { desk, grants, id } = await granted(t, { minutes: 10, maxUses: 2 })
  const leave = async () => grants.giveBack((await grants.use(held({ idempotencyKey: 'k' }))) as UsedGrant, 'req-1')
  for (let time = 0; time < 21; time++) await leave()
  t.match(await grants.list(), [{ uses: 1 }])
  await leave()
  t.strictSame(await grants.list(), [], 'it is used up')
  t.equal(await desk.queue.checkKey('agent-1', 'k'), undefined, 'keys are freed always')
  const { items } = await desk.store.audit.list({ page: 1, pageSize: 100 })
  const given = items.filter(({ action, subject }) => action === 'hitl.grant.giveBack' && subject === id)
  t.equal(given.length, 20)
})

t.test('a grant covers nothing but its agent, rule, method, origin and path', async t => {
  const { grants } = await granted(t, { minutes: 10, maxUses: 100 })
  const others: HeldOptions[] = [
    { agent: otherAgent },
    { rule: 'another' },
    { method: 'PUT' },
    { url: 'http://api.shop.example/v1/refunds' },
    { url: 'https://api.shop.example:8443/v1/refunds' },
    { url: 'https://shop.example/v1/refunds' },
    { url: 'https://api.shop.example/v1/refunds/' },
    { url: 'https://api.shop.example/v1/%72efunds' },
  ]
  for (const other of others) t.notOk(await uses(grants, other), JSON.stringify(other))
  t.ok(await uses(grants))
})

t.test('a grant never answers a risk, nor a rule that asks for two', async t => {
  const { grants } = await granted(t, { minutes: 10, maxUses: 100 })
  t.notOk(await uses(grants, { risk: 0.81 }))
  t.notOk(await uses(grants, { source: 'risk', risk: 0.9 }))
  t.notOk(await uses(grants, { source: 'unassigned' }))
  t.notOk(await uses(grants, { approvals: 2 }))
  t.ok(await uses(grants, { risk: 0.8 }))
})

t.test('a grant runs out of time', async t => {
  const { desk, grants, id } = await granted(t, { minutes: 1, maxUses: 100 })
  desk.clock.advance(59_999)
  t.ok(await uses(grants))
  desk.clock.advance(1)
  t.notOk(await uses(grants))
  t.strictSame(await grants.list(), [])
  await desk.queue.sweep()
  t.equal(await desk.store.grants.remove(id!, (await lastEntry(desk))!), false)
})

t.test('a grant that runs out while a request waits for its body does not let it pass', async t => {
  const { desk, grants } = await granted(t, { minutes: 1, maxUses: 100 })
  t.equal(await grants.covers(held()), true)
  desk.clock.advance(59_999)
  t.match(await grants.use(held()), { grant: { uses: 1 } })
  t.equal((await lastEntry(desk))?.at, desk.clock.now())
  t.equal(await grants.covers(held()), true)
  desk.clock.advance(1)
  t.equal(await grants.use(held()), undefined)
  t.equal(await grants.covers(held()), false)
})

t.test(
  'a request that begins again is not counted again while its grant covers it, and frees its key otherwise',
  async t => {
    const { desk, grants } = await granted(t, { minutes: 1, maxUses: 2 })
    const options = { idempotencyKey: 'k' }
    const before = (await grants.use(held(options))) as UsedGrant
    t.ok(await uses(grants))
    t.equal(await grants.covers(held(options)), false, 'it is used up')
    t.equal(await grants.covers(held(options), before.grant), true)
    const earlier = { grant: before.grant, unsent: before }
    t.strictSame(await grants.use(held(options), earlier), before)
    t.match(await lastEntry(desk), { details: { uses: 2 } }, 'nothing more is on record')
    t.equal(await grants.use(held({ ...options, risk: 0.9 }), earlier), undefined)
    t.match(await lastEntry(desk), { action: 'hitl.grant.giveBack', details: { uses: 1 } })
    const again = await granted(t, { minutes: 1, maxUses: 2 })
    const used = (await again.grants.use(held(options))) as UsedGrant
    again.desk.clock.advance(60_000)
    t.equal(await again.grants.covers(held(options), used.grant), false)
    const late = { grant: used.grant, unsent: used }
    t.equal(await again.grants.use(held(options), late), undefined, 'its time is over')
    t.equal(await again.desk.queue.checkKey('agent-1', 'k'), undefined, 'the key is free')
  },
)

t.test('a revoked grant is gone at once, and a second revocation finds none', async t => {
  const { desk, grants, id } = await granted(t, { minutes: 1, maxUses: 100 })
  t.equal(await grants.revoke(id!, verdict()), undefined)
  t.notOk(await uses(grants))
  t.match(await lastEntry(desk), { action: 'hitl.grant.revoke', actor: 'reviewer-1', subject: id })
  t.equal(code(await grants.revoke(id!, verdict())), 'not_found')
})

t.test('a grant that cannot be recorded lets nothing pass', async t => {
  const { desk, grants } = await granted(t, { minutes: 1, maxUses: 100 })
  await desk.store.close()
  t.equal(code(await grants.covers(held())), 'store_unavailable')
  t.equal(code(await grants.use(held())), 'store_unavailable')
})

t.test('terms out of range refuse the approval before anything is sent', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  const wrong: [string, GrantTerms][] = [
    ['grant.minutes', { minutes: 0, maxUses: 1 }],
    ['grant.minutes', { minutes: 481, maxUses: 1 }],
    ['grant.minutes', { minutes: 1.5, maxUses: 1 }],
    ['grant.maxUses', { minutes: 1, maxUses: 0 }],
    ['grant.maxUses', { minutes: 1, maxUses: 1_001 }],
    ['grant.path', { minutes: 1, maxUses: 1, path: '/v2/*' }],
    ['grant.path', { minutes: 1, maxUses: 1, path: '/**/refunds' }],
    ['grant.path', { minutes: 1, maxUses: 1, path: '**' }],
  ]
  for (const [field, grant] of wrong) {
    t.match(await desk.queue.approve(id, { ...verdict(), grant }), { refusal: 'invalid_body', errors: [{ field }] })
  }
  t.equal(desk.sent.length, 0)
  t.match(await desk.queue.get(id, agent), { status: 'Pending' })
})

t.test('a request that asks its server for another method waits for a person', async t => {
  const { grants } = await granted(t, { minutes: 10, maxUses: 9 })
  const url = 'https://api.shop.example/v1/refunds'
  for (const name of ['X-HTTP-Method-Override', 'x_http_method', 'X-Method-Override']) {
    t.notOk(await uses(grants, { rawHeaders: [name, 'DELETE'] }), name)
  }
  for (const query of ['_method=DELETE', 'a=b&%5Fmethod=PUT', 'a=b;_method=PUT', '$httpMethod=DELETE']) {
    t.notOk(await uses(grants, { url: `${url}?${query}` }), query)
  }
  t.ok(await uses(grants, { url: `${url}?method=DELETE` }))
})

t.test('the path of a request is no pattern of a grant unless the reviewer says so', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const terms = { minutes: 1, maxUses: 1 }
  for (const path of ['/**', '/v1/**', '/v1/*', '/v1/*/all']) {
    const id = await suspended(desk, { url: `https://api.shop.example${path}` })
    const expected = { refusal: 'invalid_body', errors: [{ field: 'grant.path' }] }
    t.match(await desk.queue.approve(id, { ...verdict(), grant: terms }), expected, path)
  }
  t.equal(desk.sent.length, 0)
  for (const [path, pattern] of [['/v1/*:all'], ['/v1/*', '/v1/*']]) {
    const id = await suspended(desk, { url: `https://api.shop.example${path}` })
    await desk.queue.approve(id, { ...verdict(), grant: { ...terms, path: pattern } })
  }
  const given = await createGrants(desk).list()
  t.strictSame(given.map(({ path }) => path).sort(), ['/v1/*', '/v1/*:all'])
})

t.test('a request held for its risk, or for two reviewers, cannot be granted for the future', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  for (const options of [{ source: 'risk', risk: 0.9 }, { approvals: 2 }]) {
    const id = await suspended(desk, options)
    const approval = { ...verdict(), grant: { minutes: 1, maxUses: 1 } }
    t.equal(code(await desk.queue.approve(id, approval)), 'wrong_state')
  }
  t.equal(desk.sent.length, 0)
})

t.test('a path pattern matches segment by segment', async t => {
  const cases: [string, string, boolean][] = [
    ['/a/*', '/a/b', true],
    ['/a/*', '/a/', false],
    ['/a/*', '/a/b/c', false],
    ['/a/*/c', '/a/b/c', true],
    ['/a/**', '/a/b/c', true],
    ['/a/**', '/a/', true],
    ['/a/**', '/a', false],
    ['/a/**', '/ab', false],
    ['/**', '/', true],
    ['/a*', '/ab', false],
    ['/a*', '/a*', true],
    ['/*', '/a%2Fb', false],
    ['/**', '/a%2Fb', true],
    ['/a/*', '/a/b%252Fc', false],
    ['/a/*/c', '/a/b;x/c', true],
    ['/a/*', '/a/b%2F..%2Fc', false],
    ['/a%2Fb', '/a%2Fb', true],
    ['/a%2Fb', '/a/b', false],
  ]
  for (const [pattern, path, expected] of cases) t.equal(matchesPath(pattern, path), expected, `${pattern} ${path}`)
})
