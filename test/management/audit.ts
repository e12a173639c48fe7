import t from 'tap'
import { hashOf } from '../../src/storage/chain.ts'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t)
const { call, person, admin, clock, store } = control
const auditor = await person('auditor')
const list = async (query = '', token = auditor.token) => (await call('GET', `/audit${query}`, { token })).json

/** Does one management action and gives what the trail has of it. */
async function recorded(method: string, path: string, body?: object) {
  const answer = await call(method, path, { token: admin.token, ...(body && { body }) })
  const { items } = await store.audit.list({ page: 1, pageSize: 1 })
  return { answer, record: items[0]! }
}

t.test('every change over the API leaves an entry of who, what, from what and to what', async t => {
  const registration = { name: 'bot', ownerId: 'team', clientSecret: 'a secret of the bot' }
  const registered = await recorded('POST', '/agents', registration)
  const { id } = registered.answer.json
  t.match(registered.record, {
    action: 'agent.register',
    subject: id,
    details: { after: { name: 'bot', ownerId: 'team', status: 'Active', roles: ['agent'], policyName: null } },
  })
  const rule = { name: 'r', effect: 'Deny', conditions: [{ field: 'input.method', operator: 'eq', value: 'PUT' }] }
  const created = await recorded('POST', '/policies', { name: 'p', default: 'Allow' })
  const { version } = created.answer.json
  const changes: [string, string, object | undefined, string, object][] = [
    ['PUT', '/policies/p', { default: 'Allow', rules: [rule] }, 'policy.replace', { before: version, after: String }],
    ['PUT', `/agents/${id}/policy`, { policyName: 'p' }, 'agent.policy', pair('policyName', null, 'p')],
    ['PUT', `/agents/${id}/policy`, { policyName: null }, 'agent.policy', pair('policyName', 'p', null)],
    ['PUT', `/agents/${id}/roles`, { roles: ['auditor'] }, 'agent.roles', pair('roles', ['agent'], ['auditor'])],
    ['POST', `/agents/${id}/quarantine`, undefined, 'agent.quarantine', pair('status', 'Active', 'Quarantined')],
    [
      'POST',
      `/agents/${id}/lift-quarantine`,
      undefined,
      'agent.liftQuarantine',
      pair('status', 'Quarantined', 'Active'),
    ],
    ['POST', `/agents/${id}/deactivate`, undefined, 'agent.deactivate', pair('status', 'Active', 'Inactive')],
    ['POST', `/agents/${id}/activate`, undefined, 'agent.activate', pair('status', 'Inactive', 'Active')],
    ['POST', `/agents/${id}/revoke`, undefined, 'agent.revoke', pair('status', 'Active', 'Revoked')],
    [
      'DELETE',
      `/agents/${id}`,
      undefined,
      'agent.remove',
      { before: { name: 'bot', status: 'Revoked', roles: ['auditor'] } },
    ],
    ['DELETE', '/policies/p', undefined, 'policy.remove', { before: String }],
  ]
  t.match(created.record, { action: 'policy.create', details: { after: version, document: { default: 'Allow' } } })
  for (const [method, path, body, action, details] of changes) {
    const { answer, record } = await recorded(method, path, body)
    t.equal(answer.status, 200, action)
    const subject = path.startsWith('/policies') ? 'p' : id
    t.match(record, { action, subject, actor: admin.agent.id, requestId: /^request-/, details }, action)
  }
  t.notMatch(JSON.stringify((await store.audit.list({ page: 1, pageSize: 200 })).items), 'a secret of the bot')
})

const pair = (field: string, before: unknown, after: unknown) => ({
  before: { [field]: before },
  after: { [field]: after },
})

t.test('a call that needs another role is recorded, and nothing is done', async t => {
  const bot = await person('agent')
  const body = { roles: ['admin'] }
  t.match(await call('PUT', `/agents/${bot.agent.id}/roles`, { token: bot.token, body }), { status: 403 })
  const { items } = await list(`?actor=${bot.agent.id}`)
  t.match(items, [{ action: 'management.refused', subject: 'assignRoles', details: { roles: ['agent'] } }])
  t.equal(items.length, 1)
})

t.test('the list is newest first, in pages, with its filters', async t => {
  const bot = await person('agent')
  const reviewer = await person('reviewer')
  const from = clock.now()
  const ids = []
  for (let count = 0; count < 3; count++) {
    ids.push(await control.suspend(bot.agent))
    clock.advance(1_000)
  }
  await call('POST', `/hitl/${ids[1]}/deny`, { token: reviewer.token, body: { comment: 'no' } })
  const told = async (query: string) => (await list(query)).items.map((item: { subject: string }) => item.subject)
  t.strictSame(await told(`?actor=${bot.agent.id}`), [...ids].reverse())
  t.strictSame(await told(`?subject=${ids[1]}`), [ids[1], ids[1]])
  t.strictSame(await told(`?subject=${ids[1]}&action=hitl.deny`), [ids[1]])
  const time = (ms: number) => new Date(from + ms).toISOString()
  const during = `?action=hitl.suspend&from=${time(1_000)}&to=${time(2_000)}`
  t.strictSame(await told(during), [ids[1]])
  t.strictSame(await told(`?action=hitl.suspend&to=${time(0)}`), [])
  const page = await list(`?actor=${bot.agent.id}&page=2&pageSize=2`)
  t.match(page, { page: 2, pageSize: 2, totalCount: 3, items: [{ subject: ids[0] }] })
  const [denied] = (await list(`?action=hitl.deny&subject=${ids[1]}`)).items
  t.match(denied, {
    actor: reviewer.agent.id,
    timestamp: time(3_000),
    details: { comment: 'no', agentId: bot.agent.id },
  })
  t.equal(hashOf(denied), denied.hash)
})

t.test('the list goes on before any record', async t => {
  const whole = await list('?pageSize=3')
  const [, second, third] = whole.items
  t.equal(whole.next, null)
  const rest = await list(`?before=${second.seq}&pageSize=3`)
  t.equal(rest.items[0].seq, third.seq)
  t.equal(rest.totalCount, whole.totalCount - 2)
  t.match(await list('?before=1'), { items: [], totalCount: 0, next: null })
  t.match(await call('GET', '/audit?before=0', { token: auditor.token }), { status: 400 })
})

t.test('a filter that is none is 400', async t => {
  for (const query of ['from=yesterday', 'to=2026-13-01', 'from=2026-01-05T10:00:00', 'page=0', 'actor=a&actor=b'])
    t.match(await call('GET', `/audit?${query}`, { token: auditor.token }), { status: 400 }, query)
  t.match(await call('GET', '/audit?from=2026-01-05', { token: auditor.token }), { status: 200 })
})

t.test('the trail is exported whole, a record a line, as it was hashed', async t => {
  const answer = await call('GET', '/audit/export', { token: auditor.token })
  t.match(answer.headers.get('content-disposition'), /attachment; filename="audit.jsonl"/)
  const records = answer.text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  const { totalCount } = await store.audit.list({ page: 1, pageSize: 1 })
  t.equal(records.length, totalCount)
  for (const record of records) if (hashOf(record) !== record.hash) t.fail(`${record.seq} differs`)
  t.strictSame(
    records.map(record => record.seq),
    [...Array(totalCount).keys()].map(index => index + 1),
  )
})

t.test('what could deceive the eye is an escape in the list, and a JSON escape in the export', async t => {
  const bot = await person('agent')
  const reviewer = await person('reviewer')
  const id = await control.suspend(bot.agent)
  const comment = 'a\u0007\u009b31m\u202egnp.exe\u2028\u{e0041}\r\nforged'
  await call('POST', `/hitl/${id}/deny`, { token: reviewer.token, body: { comment } })
  const page = await call('GET', `/audit?subject=${id}`, { token: auditor.token })
  const lines = await call('GET', '/audit/export', { token: auditor.token })
  for (const { text } of [page, lines]) {
    t.notMatch(text.trimEnd().replaceAll('\n', ''), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  }
  t.match(page.json.items[0].details.comment, 'a\\u{7}\\u{9b}31m\\u{202e}gnp.exe\\u{2028}\\u{e0041}\\u{d}\nforged')
  t.match(lines.text, '\\u202e')
  const exported = lines.text
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  t.ok(
    exported.some(({ details }) => details.comment === comment),
    'the export has the value itself',
  )
})

t.test('reviewers and agents read nothing of it', async t => {
  for (const role of ['agent', 'reviewer'] as const)
    for (const path of ['/audit', '/audit/export'])
      t.match(await call('GET', path, { token: (await person(role)).token }), {
        status: 403,
        json: { code: 'forbidden' },
      })
})
