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
