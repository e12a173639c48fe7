/** Threat T83 of SECURITY.md. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'

const value = 'key-of-the-operator-0123456789'
const origin = await startOrigin(t)
const directory = testdir(t, { policies: {} })
const keyFile = join(directory, 'key')
writeFileSync(keyFile, 'first', { mode: 0o600 })
const host = `127.0.0.1:${origin.port}`
const gateway = await startGateway(t, {
  directory,
  env: { SHOP_KEY: value },
  config: {
    Upstreams: [
      { Host: host, Policy: 'held', Prefix: 'Bearer ', ValueFromEnv: 'SHOP_KEY', AllowHttp: true },
      { Host: host, Policy: 'allow-all', Header: 'X-Api-Key', ValueFromFile: 'key', AllowHttp: true },
    ],
  },
})
await gateway.policy({ name: 'held', default: 'Hitl' })
const bot = await gateway.agent()
const careful = await gateway.agent({ policyName: 'held' })
const target = `${origin.url}/orders`

t.beforeEach(() => {
  origin.seen.length = 0
})

t.test('an agent without the key reaches the upstream with it, and only by the policy that is named', async t => {
  await gateway.proxy(bot.token, target)
  t.equal(origin.seen[0]?.headers['x-api-key'], 'first')
  t.equal(origin.seen[0]?.headers.authorization, undefined)
})

t.test('no value is put into a body, a path or another field, whatever stands there', async t => {
  const body = JSON.stringify({ key: '%SHOP_KEY%', other: '{{key}} {X-Api-Key} $ENV:SHOP_KEY' })
  await gateway.proxy(bot.token, `${target}?key=SHOP_KEY`, { method: 'POST', body, headers: { 'x-other': '{{key}}' } })
  const { body: sent, target: path, headers } = origin.seen[0]!
  t.equal(sent.toString(), body)
  t.match({ path, other: headers['x-other'] }, { path: '/orders?key=SHOP_KEY', other: '{{key}}' })
})

t.test('an agent that sends the field itself is refused before anything leaves', async t => {
  const answer = await gateway.proxy(bot.token, target, { headers: { 'x-api-key': 'mine' } })
  t.equal(answer.status, 403)
  t.match(await answer.json(), { code: 'credential_conflict', detail: /X-Api-Key/ })
  const held = await gateway.proxy(careful.token, target, { headers: { authorization: 'mine' } })
  t.equal(held.headers.get('gateway-error'), 'credential_conflict', 'nor is it held')
  t.equal(origin.seen.length, 0)
})

t.test('a held request gets it when it is sent, and no earlier', async t => {
  const held = await gateway.proxy(careful.token, target, { method: 'POST', body: 'buy=1' })
  t.equal(held.status, 202)
  const id = held.headers.get('location')!.replace('/hitl/status/', '')
  const views = await Promise.all(
    ['/hitl', `/hitl/${id}`, `/hitl/status/${id}`, '/audit/export'].map(path => gateway.manage('GET', path)),
  )
  for (const { text } of views) t.notMatch(text, /key-of-the-operator/i)
  t.strictSame(JSON.parse(views[1]!.text).pending.addedFields, ['Authorization'], 'reviewers see its name')
  t.notMatch((await gateway.manage('GET', `/hitl/${id}`, undefined, careful.token)).text, /authorization/i)
  t.equal((await gateway.manage('POST', `/hitl/${id}/approve`)).status, 200)
  t.equal(origin.seen[0]?.headers.authorization, `Bearer ${value}`)
  t.equal(origin.seen[0]?.body.toString(), 'buy=1')
})

t.test('a request whose credential is another one by now is not sent, and says so', async t => {
  const agent = await gateway.agent({ policyName: 'held' })
  const held = await gateway.proxy(agent.token, target)
  const id = held.headers.get('location')!.replace('/hitl/status/', '')
  await gateway.policy({ name: 'other', default: 'Allow' })
  await gateway.manage('PUT', `/agents/${agent.id}/policy`, { policyName: 'other' })
  const answer = await gateway.manage('POST', `/hitl/${id}/approve`)
  t.match(JSON.parse(answer.text), {
    code: 'wrong_state',
    detail: /held with Authorization from SHOP_KEY, and .* none/,
  })
  t.equal(origin.seen.length, 0)
  t.match(JSON.parse((await gateway.manage('GET', `/hitl/${id}`)).text), { pending: { status: 'Pending' } })
})

t.test('a reload reads the file again, and keeps the old value when it cannot', async t => {
  writeFileSync(keyFile, 'second')
  t.equal(await gateway.gateway.reload(), true)
  await gateway.proxy(bot.token, target)
  writeFileSync(keyFile, '')
  t.equal(await gateway.gateway.reload(), false)
  await gateway.proxy(bot.token, target)
  t.strictSame(
    origin.seen.map(({ headers }) => headers['x-api-key']),
    ['second', 'second'],
  )
})

t.test('the value is in no log line and in no file of the data folder', async t => {
  await gateway.close()
  const data = join(directory, 'data')
  // Gateways on a database have no such folder.
  const names = existsSync(data) ? readdirSync(data) : []
  const files = names.map(name => readFileSync(join(data, name), 'latin1'))
  for (const text of [JSON.stringify(gateway.log), ...files]) t.notOk(text.includes(value))
})
