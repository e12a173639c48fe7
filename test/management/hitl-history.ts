import t from 'tap'
import { startControl } from '../fixtures/control.ts'
import { answered } from '../fixtures/hitl.ts'

const hour = 3_600_000

t.test('past requests are listed by what became of them, latest first', async t => {
  const { call, person, suspend, clock, queue, upstream, tokenOf } = await startControl(t)
  const bot = await person('agent')
  const { agent: reviewer } = await person('reviewer')
  const hold = (name: string) => suspend(bot.agent, { url: `https://${name}.example/`, rule: name })
  const [approved, denied, withdrawn] = [await hold('approved'), await hold('denied'), await hold('withdrawn')]
  const [failed, expired] = [await hold('failed'), await hold('expired')]
  const decide = async (id: string, what: string, body?: object) => {
    clock.advance(1_000)
    return (await call('POST', `/hitl/${id}/${what}`, { token: await tokenOf(reviewer), body })).status
  }
  const list = async (query: string) =>
    (await call('GET', `/hitl/history?${query}`, { token: await tokenOf(reviewer) })).json.items as Record<
      string,
      unknown
    >[]
  const idsOf = async (query: string) => (await list(query)).map(({ id }) => id)

  t.equal(await decide(approved, 'approve', { comment: 'fine' }), 200)
  t.equal(await decide(denied, 'deny', { comment: 'a\u202eb' }), 200)
  clock.advance(1_000)
  t.equal((await call('DELETE', `/hitl/${withdrawn}`, { token: bot.token })).status, 200)
  upstream.answer = () => Promise.reject(new Error('reset'))
  t.equal(await decide(failed, 'approve'), 502)
  upstream.answer = async () => answered()
  t.strictSame(await idsOf(''), [failed, withdrawn, denied, approved], 'what waits is not past')
  clock.advance(hour)
  await queue.sweep()

  t.strictSame(await idsOf(''), [expired, failed, withdrawn, denied, approved])
  t.strictSame(await idsOf('status=decided'), [failed, denied, approved])
  t.strictSame(await idsOf('status=approved'), [failed, approved])
  t.strictSame(await idsOf('status=denied'), [denied])
  t.strictSame(await idsOf('status=withdrawn'), [withdrawn])
  t.strictSame(await idsOf('status=failed'), [failed])
  t.strictSame(await idsOf('status=expired'), [expired])
  t.strictSame(await idsOf('status=unknown'), [])
  t.strictSame(await idsOf('rule=denied&host=denied.example'), [denied])
  t.match(await list('status=denied'), [{ status: 'Denied', decidedBy: reviewer.id, comment: 'a\\u{202e}b' }])
  t.match(await list('status=failed'), [{ status: 'Approved', replay: 'failed', attempt: 1, responseStatus: null }])
  t.match(await list('status=expired'), [
    { status: 'Expired', decidedBy: null, decidedAt: '2026-01-05T11:00:00.000Z', waitedSeconds: 3_600 },
  ])
})

t.test('an expired request stays in the history until RetentionSeconds, and nowhere else', async t => {
  const { call, person, suspend, clock, queue, store, tokenOf } = await startControl(t)
  const bot = await person('agent')
  const { agent: reviewer } = await person('reviewer')
  const id = await suspend(bot.agent, { idempotencyKey: 'k' })
  clock.advance(hour)
  await queue.sweep()
  const token = await tokenOf(reviewer)
  for (const path of [`/hitl/${id}`, `/hitl/status/${id}`, `/hitl/${id}/response`]) {
    t.equal((await call('GET', path, { token })).status, 404, path)
  }
  for (const path of ['approve', 'deny', 'extend']) {
    t.equal((await call('POST', `/hitl/${id}/${path}`, { token })).status, 404, path)
  }
  t.equal(await store.hitl.sealed(id), undefined, 'what it would have sent is gone')
  t.not(await suspend(bot.agent, { idempotencyKey: 'k' }), id, 'its key is free')
  clock.advance(24 * hour + 1)
  await queue.sweep()
  const later = await call('GET', '/hitl/history', { token: await tokenOf(reviewer) })
  t.notOk(later.json.items.some((item: { id: string }) => item.id === id))
})

t.test('the history goes on before any place', async t => {
  const { call, person, suspend, clock } = await startControl(t)
  const bot = await person('agent')
  const { token } = await person('reviewer')
  const ids = [await suspend(bot.agent), await suspend(bot.agent)]
  for (const id of ids) {
    clock.advance(1)
    await call('POST', `/hitl/${id}/deny`, { token })
  }
  const page = async (query: string) => (await call('GET', `/hitl/history?${query}`, { token })).json
  const [last] = (await page('')).items
  t.match(await page(`before=${last.decidedAt},${last.id}`), { items: [{ id: ids[0] }], totalCount: 1, next: null })
})

t.test('the history comes in pages', async t => {
  const { call, person, suspend, clock } = await startControl(t)
  const bot = await person('agent')
  const { token } = await person('reviewer')
  const ids = [await suspend(bot.agent), await suspend(bot.agent), await suspend(bot.agent)]
  for (const id of ids) {
    clock.advance(1)
    await call('POST', `/hitl/${id}/deny`, { token })
  }
  const page = async (query: string) => (await call('GET', `/hitl/history?${query}`, { token })).json
  t.match(await page('pageSize=2'), { items: [{ id: ids[2] }, { id: ids[1] }], page: 1, pageSize: 2, totalCount: 3 })
  t.match(await page('pageSize=2&page=2'), { items: [{ id: ids[0] }], page: 2, totalCount: 3 })
  t.match(await page('page=9'), { items: [], totalCount: 3 })
  for (const query of ['pageSize=0', 'pageSize=201', 'page=0']) {
    t.match(await page(query), { status: 400, code: 'invalid_parameter' }, query)
  }
  t.match((await call('GET', '/hitl/history?status=other', { token })).json, {
    status: 400,
    errors: [{ field: 'status' }],
  })
})

t.test('the list of what waits has no other form', async t => {
  const { call, person } = await startControl(t)
  const { token } = await person('reviewer')
  for (const query of ['status=past', 'status=pending', 'page=1', 'before=x']) {
    const errors = [{ field: query.replace(/=.*/, ''), message: /unknown parameter/ }]
    t.match((await call('GET', `/hitl?${query}`, { token })).json, { status: 400, errors }, query)
  }
})
