/** Threat T39 of SECURITY.md. */

import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const { call, admin, agent, clock } = await startControl(t)
clock.advance(1)
const bot = await agent({ name: 'bot', ownerId: 'team', policyName: 'p' })
for (const name of ['c', 'd', 'e']) {
  clock.advance(1)
  await agent({ name })
}

t.test('agents are listed in the order of registration, without their secrets', async t => {
  const { status, json, text } = await call('GET', '/agents', { token: admin.token })
  t.equal(status, 200)
  t.match(json, { page: 1, pageSize: 25, totalCount: 5 })
  t.strictSame(json.items[1], {
    id: bot.id,
    name: 'bot',
    ownerId: 'team',
    status: 'Active',
    policyName: 'p',
    trustScore: 0.5,
  })
  t.notMatch(text, /secret|\$2[aby]\$/i)
})

t.test('pages cut the list, and a page past its end is empty', async t => {
  const names = async (query: string) => {
    const { json } = await call('GET', `/agents?${query}`, { token: admin.token })
    return json.items.map((item: { name: string }) => item.name)
  }
  t.strictSame(await names('page=2&pageSize=2'), ['c', 'd'])
  t.strictSame(await names('page=3&pageSize=2'), ['e'])
  t.strictSame(await names('page=4&pageSize=2'), [])
  t.strictSame(await names('page=1000000000&pageSize=200'), [])
})

t.test('a page that is no page is 400 and named', async t => {
  const bad = ['0', '-1', '1.5', 'abc', '1e9', '9007199254740993', '', ' 1', '0x1', 'NaN']
  for (const value of bad)
    for (const name of ['page', 'pageSize']) {
      const { status, json } = await call('GET', `/agents?${name}=${value}`, { token: admin.token })
      t.match({ status, json }, { status: 400, json: { code: 'invalid_parameter' } }, `${name}=${value}`)
      t.equal(json.errors[0].field, name)
    }
  t.match(await call('GET', '/agents?pageSize=201', { token: admin.token }), { status: 400 })
  t.match(await call('GET', '/agents?page=1&page=2', { token: admin.token }), {
    status: 400,
    json: { errors: [{ field: 'page', message: 'must be given once' }] },
  })
})

t.test('agents are found by name, owner, id, policy and tags, in pages', async t => {
  const { call, admin, agent } = await startControl(t)
  const bot = await agent({ name: 'Billing bot', ownerId: 'team-pay', tags: { region: 'North' } })
  await agent({ name: 'other', ownerId: 'team-x' })
  const found = async (search: string) =>
    (await call('GET', `/agents?search=${encodeURIComponent(search)}`, { token: admin.token })).json
  for (const search of ['billing', 'TEAM-PAY', bot.id.slice(2, 12), 'north', 'region']) {
    t.match(await found(search), { totalCount: 1, items: [{ id: bot.id }] }, search)
  }
  t.match(await found('nobody'), { totalCount: 0, items: [] })
  t.ok((await found('')).totalCount > 1)
})

t.test('tags are set at the registration, and replaced', async t => {
  const { call, admin, registry } = await startControl(t)
  const body = { name: 'tagged', ownerId: 'me', tags: { team: 'a' } }
  const { json, status } = await call('POST', '/agents', { token: admin.token, body })
  t.equal(status, 201)
  t.strictSame(registry.get(json.id)?.tags, { team: 'a' })
  const put = (tags: unknown, id = json.id) => call('PUT', `/agents/${id}/tags`, { token: admin.token, body: { tags } })
  t.match(await put({ region: 'north' }), { status: 200, text: '' })
  t.strictSame(registry.get(json.id)?.tags, { region: 'north' })
  t.match((await call('GET', `/agents/${json.id}`, { token: admin.token })).json, { tags: { region: 'north' } })
  for (const bad of [null, [], { a: 1 }, { 'no blank': 'x' }, { a: 'x'.repeat(201) }])
    t.match(await put(bad), { status: 400 })
  t.match(await put({}, 'x'), { status: 404 })
  t.strictSame(registry.get(json.id)?.tags, { region: 'north' })
})
