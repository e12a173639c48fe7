import t from 'tap'
import { createChecks } from '../../src/api/check.ts'
import { openApi } from '../../src/api/openapi.ts'
import { startControl } from '../fixtures/control.ts'

t.test('pending requests are listed, oldest first', async t => {
  const { call, person, suspend, clock } = await startControl(t)
  const bot = await person('agent')
  const reviewer = await person('reviewer')
  const first = await suspend(bot.agent)
  clock.advance(1_000)
  const second = await suspend(bot.agent, { url: 'https://b.example/' })
  const { status, json } = await call('GET', '/hitl', { token: reviewer.token })
  t.equal(status, 200)
  t.match(json, [
    {
      id: first,
      method: 'POST',
      url: 'https://api.shop.example/v1/refunds',
      reason: /refunds/,
      agentId: bot.agent.id,
      timestamp: '2026-01-05T10:00:00.000Z',
      expiresAt: '2026-01-05T11:00:00.000Z',
      status: 'Pending',
    },
    { id: second, url: 'https://b.example/' },
  ])
})

t.test('the list can be narrowed to an agent, a host and a rule, and names the agent', async t => {
  const { call, agent, person, suspend, clock } = await startControl(t)
  const [first, second] = [await agent({ name: 'bot of\u00a0support' }), await agent({ name: 'other' })]
  const { token } = await person('reviewer')
  const one = await suspend(first, { url: 'https://a.example:8443/x', rule: 'refunds' })
  clock.advance(1)
  const two = await suspend(second, { url: 'http://[::1]:1/', rule: 'refunds' })
  clock.advance(1)
  const three = await suspend(first, { url: 'https://a.example/y', rule: 'sales' })
  const found = async (query: string) =>
    (await call('GET', `/hitl?${query}`, { token })).json.map((item: { id: string }) => item.id)
  t.strictSame(await found(`agentId=${first.id.toUpperCase()}`), [one, three])
  t.strictSame(await found('host=A.example'), [one, three])
  t.strictSame(await found('host=[::1]'), [two])
  t.strictSame(await found('rule=refunds'), [one, two])
  t.strictSame(await found(`rule=sales&host=a.example&agentId=${first.id}`), [three])
  t.strictSame(await found('rule='), [])
  t.match((await call('GET', '/hitl?rule=a&rule=b', { token })).status, 400)
  const [item] = (await call('GET', '/hitl?rule=sales', { token })).json
  t.match(item, { agentName: 'bot of\\u{a0}support', host: 'a.example', rule: 'sales', policyName: 'support' })
})

t.test('the list is read some at a time', async t => {
  const { call, person, suspend, clock } = await startControl(t)
  const bot = await person('agent')
  const { token } = await person('reviewer')
  const ids: string[] = []
  for (let n = 0; n < 5; n++) {
    ids.push(await suspend(bot.agent))
    clock.advance(1)
  }
  const page = async (query: string): Promise<{ id: string; timestamp: string }[]> =>
    (await call('GET', `/hitl?${query}`, { token })).json
  const found: string[] = []
  for (let after = ''; ; ) {
    const some = await page(`limit=2${after}`)
    found.push(...some.map(({ id }) => id))
    const last = some.at(-1)
    if (last === undefined || some.length < 2) break
    after = `&after=${last.timestamp},${last.id}`
  }
  t.strictSame(found, ids)
  t.equal((await page('')).length, 5, 'all of them without a limit')
  t.strictSame(await page('after=2026-13-01T00:00:00.000Z,x').then(list => list.length), 5, 'there is no such day')
  for (const query of ['limit=0', 'limit=1001', 'after=x', `after=${ids[0]}`]) {
    t.match(await call('GET', `/hitl?${query}`, { token }), { status: 400, json: { code: 'invalid_parameter' } }, query)
  }
})

t.test('what the API shows is what its document says', async t => {
  const { call, person, suspend } = await startControl(t)
  const bot = await person('agent')
  const { token } = await person('reviewer')
  const id = await suspend(bot.agent)
  const check = createChecks(openApi)
  const { schemas } = openApi.components as unknown as { schemas: Record<string, { properties: object }> }
  const known = Object.keys(schemas['HitlRequest']!.properties)
  t.strictSame(check('/components/schemas/HitlSummary')((await call('GET', '/hitl', { token })).json[0]), [])
  for (const reader of [token, bot.token]) {
    const { json } = await call('GET', `/hitl/${id}`, { token: reader })
    t.strictSame(check('/components/schemas/HitlRead')(json), [])
    t.strictSame(
      Object.keys(json.pending).filter(name => !known.includes(name)),
      [],
    )
  }
})

t.test('a long list is compressed for those who accept that, and says the same', async t => {
  const { call, person, suspend } = await startControl(t)
  const bot = await person('agent')
  const { token } = await person('reviewer')
  for (let n = 0; n < 9; n++) await suspend(bot.agent)
  const read = async (accepted: string) => {
    const { headers, json } = await call('GET', '/hitl', { token, headers: { 'Accept-Encoding': accepted } })
    return { coding: headers.get('content-encoding'), vary: headers.get('vary'), count: json.length }
  }
  t.strictSame(await read('gzip'), { coding: 'gzip', vary: 'Accept-Encoding', count: 9 })
  t.strictSame(await read('gzip;q=0, identity'), { coding: null, vary: 'Accept-Encoding', count: 9 })
})
