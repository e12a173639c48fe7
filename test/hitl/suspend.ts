/** Threat T23 of SECURITY.md. */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { isRefusal } from '../../src/base/refusals.ts'
import {
  agent,
  answered,
  code,
  held,
  listed,
  openDesk,
  otherAgent,
  reviewer,
  suspended,
  verdict,
} from '../fixtures/hitl.ts'
import { testdir } from '../fixtures/testdir.ts'

t.test('a suspended request is listed with what a reviewer needs, and is on disk when it is acknowledged', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  t.match(id, /^[\w-]{30}$/)
  const [item] = await listed(desk)
  t.match(item, {
    id,
    method: 'POST',
    url: 'https://api.shop.example/v1/refunds',
    reason: 'rule "refunds": input.body.amount gt 100',
    agentId: 'agent-1',
    ownerId: 'team-a',
    host: 'api.shop.example',
    timestamp: '2026-01-05T10:00:00.000Z',
    expiresAt: '2026-01-05T11:00:00.000Z',
    status: 'Pending',
    bodyBytes: 14,
    rule: 'refunds',
    matched: [{ actual: 250 }],
    waitedSeconds: 0,
    approvalsNeeded: 1,
  })
  t.match(desk.events, [{ type: 'pending', hitlId: id, data: { id, rule: 'refunds' } }])
  const { items } = await desk.store.audit.list({ page: 1, pageSize: 10 })
  t.match(items, [{ action: 'hitl.suspend', actor: 'agent-1', subject: id, details: { digest: item?.digest } }])
})

t.test('no secret of a request is readable in what the store wrote', async t => {
  const directory = testdir(t)
  const desk = await openDesk({ directory, alone: 'the files of SQLite are read' })
  await suspended(desk, {
    url: 'https://a.example/?access_token=canary-1',
    rawHeaders: [
      'Authorization',
      'Bearer canary-2',
      'Cookie',
      'a=canary-3',
      'X-Api-Key',
      'canary-4',
      'X-Seen',
      'plain',
    ],
  })
  await desk.store.close()
  const written = readdirSync(directory).map(file => readFileSync(`${directory}/${file}`, 'latin1'))
  t.ok(written.some(text => text.includes('plain')))
  t.notOk(written.some(text => text.includes('canary-')))
})

t.test('of requests suspended at once exactly as many are held as there is room', async t => {
  const desk = await openDesk({ directory: testdir(t), settings: { MaxPendingRequests: 3 } })
  t.teardown(() => desk.store.close())
  const results = await Promise.all(Array.from({ length: 10 }, () => desk.queue.suspend(held())))
  const refused = results.filter(isRefusal)
  t.equal(refused.length, 7)
  t.match(refused[0], { refusal: 'hitl_queue_full', status: 429, headers: ['Retry-After', /^\d+$/] })
  t.equal((await listed(desk)).length, 3)
  t.strictSame(desk.reports, Array(7).fill('hitl_queue'))
})

t.test('no more is stored of requests than may be, and decided ones give back what is deleted of them', async t => {
  const largest = Math.ceil((10_000 * 7) / 3) + 262_144
  const settings = { MaxPendingRequests: 10_000, MaxStoredBytes: largest, MaxPendingPercentPerAgent: 1 }
  const desk = await openDesk({ directory: testdir(t), settings })
  t.teardown(() => desk.store.close())
  const body = 'x'.repeat(10_000)
  const ids: string[] = []
  for (let result = await desk.queue.suspend(held({ body })); !isRefusal(result); ) {
    ids.push(result.id)
    result = await desk.queue.suspend(held({ body }))
  }
  t.equal(ids.length, 10, 'one percent is less than one request of the largest size')
  t.strictSame(desk.reports, ['hitl_bytes'])
  t.match(await desk.queue.suspend(held({ body })), { refusal: 'hitl_storage_full', status: 429 })
  await desk.queue.withdraw(ids[0]!, { agentId: agent.id, requestId: null, cause: 'asked' })
  t.equal(code(await desk.queue.suspend(held({ body }))), undefined)
  await desk.queue.deny(ids[1]!, verdict())
  await desk.queue.deny(ids[2]!, verdict())
  await desk.queue.deny(ids[3]!, verdict())
  t.equal(code(await desk.queue.suspend(held({ body }))), undefined)
  while (code(await desk.queue.suspend(held({ body }))) === undefined);
  desk.clock.advance(86_400_001)
  await desk.queue.sweep()
  await desk.queue.sweep()
  t.equal(code(await desk.queue.suspend(held({ body }))), undefined)
})

t.test('an answer is kept although the storage is full, and counts', async t => {
  const settings = { MaxStoredBytes: 300_000, MaxStoredResponseBytes: 300_000 }
  const answer = async () => answered('y'.repeat(299_000))
  const desk = await openDesk({ directory: testdir(t), settings, answer })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  const approved = await desk.queue.approve(id, verdict())
  if ('body' in approved) approved.body.resume()
  await desk.queue.idle()
  t.equal((await desk.queue.answer(id, agent))?.body.length, 299_000)
  t.equal(code(await desk.queue.suspend(held())), 'hitl_storage_full')
})

t.test('the same key and request is one suspension; another request under the key is refused', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk, { idempotencyKey: 'k' })
  t.equal(await suspended(desk, { idempotencyKey: 'k' }), id)
  t.equal(code(await desk.queue.suspend(held({ idempotencyKey: 'k', body: 'other' }))), 'already_exists')
  t.not(await suspended(desk, { idempotencyKey: 'k', agent: otherAgent }), id)
  t.equal(code(await desk.queue.suspend(held({ idempotencyKey: 'k'.repeat(256) }))), 'invalid_request')
  t.equal((await listed(desk)).length, 2)
  t.equal(desk.events.length, 2)
})

t.test('a store that fails refuses the suspension', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  await desk.store.close()
  t.match(await desk.queue.suspend(held()), { refusal: 'store_unavailable', status: 503 })
  t.equal(desk.events.length, 0)
})

t.test('a request that nobody answered is gone, and its room is free again', async t => {
  const desk = await openDesk({ directory: testdir(t), settings: { MaxPendingRequests: 250 } })
  t.teardown(() => desk.store.close())
  // A database is asked for at most 64 writes of one agent at a time.
  const agents = Array.from({ length: 250 }, (_, index) => ({ ...agent, id: `agent-${index % 5}` }))
  const ids = await Promise.all(agents.map(agent => suspended(desk, { agent })))
  desk.clock.advance(3_599_999)
  await desk.queue.sweep()
  t.equal((await listed(desk)).length, 250)
  desk.clock.advance(1)
  t.equal(await desk.queue.get(ids[0]!, reviewer), undefined)
  t.strictSame(await listed(desk), [])
  await desk.queue.sweep()
  t.equal(desk.events.filter(event => event.type === 'expired').length, 250)
  t.equal(code(await desk.queue.suspend(held())), undefined)
})

const retried = [
  'Accept',
  '*/*',
  'X-Tenant',
  'a',
  'traceparent',
  '00-1',
  'X-B3-SpanId',
  '1',
  'Date',
  'now',
  'Prefer',
  'wait=1',
]

for (const [what, rawHeaders, same] of [
  ['another trace', ['Accept', '*/*', 'X-Tenant', 'a', 'traceparent', '00-2', 'X-B3-SpanId', '2'], true],
  [
    'other ids, another time and another client',
    [...retried, 'X-Request-Id', '2', 'User-Agent', 'x', 'date', 'b'],
    true,
  ],
  [
    'the counters of an SDK and another cookie',
    [
      ...retried,
      'X-Stainless-Retry-Count',
      '1',
      'X-Stainless-Timeout',
      '60',
      'X-Goog-Api-Client',
      'a',
      'Cookie',
      'b=1',
    ],
    true,
  ],
  ['another wait', [...retried, 'Prefer', 'wait=30', 'Idempotency-Key', 'k'], true],
  ['the fields in another order and case', ['x-tenant', 'a', 'ACCEPT', '*/*'], true],
  ['another value', ['Accept', '*/*', 'X-Tenant', 'b'], false],
  ['a field more', [...retried, 'Authorization', 'Bearer other'], false],
  ['a field less', ['Accept', '*/*'], false],
] as const) {
  t.test(`a request repeated with ${what} is ${same ? 'the same' : 'another'}; the first is what is sent`, async t => {
    const desk = await openDesk({ directory: testdir(t) })
    t.teardown(() => desk.store.close())
    const id = await suspended(desk, { idempotencyKey: 'k', rawHeaders: retried })
    const again = await desk.queue.suspend(held({ idempotencyKey: 'k', rawHeaders }))
    if (same) t.match(again, { id })
    else t.equal(code(again), 'already_exists')
    await desk.queue.approve(id, verdict())
    t.strictSame(desk.sent[0]?.request.rawHeaders, retried)
  })
}

t.test('a request repeated with another method or URL is another', async t => {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  await suspended(desk, { idempotencyKey: 'k' })
  for (const other of [{ method: 'PUT' }, { url: 'https://api.shop.example/v1/refunds?x' }]) {
    t.equal(code(await desk.queue.suspend(held({ idempotencyKey: 'k', ...other }))), 'already_exists')
  }
})
