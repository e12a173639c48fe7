/** Keys of agents on the way to upstreams. Threats T13, T15 and T35 of SECURITY.md. */
import { get } from 'node:http'
import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const origin = await startOrigin(t, (req, res) => {
  res.writeHead(200)
  // Endless, unless it is asked for a whole answer.
  if (req.url === '/stream') res.write('begins')
  else res.end('whole')
})
const gateway = await startGateway(t, {
  config: {
    System: { Server: { Threads: 2 } },
    Hosts: [{ Host: 'localhost', Upstream: origin.url }],
    Security: { AgentAuth: { FallbackToAuthorization: true } },
  },
})
const agent = await gateway.agent()
const host = gateway.url.replace('127.0.0.1', 'localhost')

async function createKey(agentId = agent.id): Promise<{ id: string; key: string }> {
  return JSON.parse((await gateway.manage('POST', `/agents/${agentId}/keys`, { name: 'ci' })).text)
}

const { key } = await createKey()
const basic = (text: string) => `Basic ${Buffer.from(`me:${text}`).toString('base64')}`

t.beforeEach(() => {
  origin.seen.length = 0
})

t.test('a key is taken where a token is', async t => {
  const target = `${gateway.url}/proxy/${origin.url}/`
  const places: readonly (readonly [string, Record<string, string>])[] = [
    [target, { 'Gateway-Authorization': `Bearer ${key}` }],
    [target, { Authorization: `Bearer ${key}` }],
    [target, { Authorization: basic(key) }],
    [host, { Authorization: `Bearer ${key}` }],
    [host, { Authorization: basic(key) }],
    [host, { 'X-Api-Key': key }],
    [host, { 'X-Goog-Api-Key': key }],
    [host, { Authorization: `Bearer ${key}`, 'X-Api-Key': key }],
    [host, { Authorization: `token ${key}` }],
    [host, { Authorization: `ApiKey ${key}` }],
    [host, { Authorization: `ApiKey ${Buffer.from(`id:${key}`).toString('base64')}` }],
    [host, { Authorization: `Bot ${key}` }],
    [host, { Authorization: `SSWS ${key}` }],
    [host, { Authorization: `Key ${key}` }],
    [host, { Authorization: `Token token="${key}"` }],
    [host, { Authorization: key }],
    [host, { Authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` }],
    [host, { Authorization: `Basic ${Buffer.from(`${key}:x-oauth-basic`).toString('base64')}` }],
    [host, { Authorization: `Basic ${Buffer.from(`${key}:${key}`).toString('base64url')}` }],
    [host, { apikey: key, Authorization: `Bearer ${key}` }],
    ...['X-Auth-Token', 'X-Vault-Token', 'xi-api-key', 'DD-API-KEY', 'X-Figma-Token', 'X-Shopify-Access-Token'].map(
      name => [host, { [name]: key }] as const,
    ),
    [target, { Authorization: `token ${key}` }],
  ]
  for (const [url, headers] of places) t.equal((await fetch(url, { headers })).status, 200, JSON.stringify(headers))
  t.notMatch(JSON.stringify(origin.seen), key.slice(4, 20))
  t.notMatch(JSON.stringify(origin.seen), basic(key).slice(20))
})

t.test('beside a key, the other fields are the client’s own for the upstream', async t => {
  const headers = { 'X-Api-Key': key, Authorization: 'Bearer of-the-upstream' }
  t.equal((await fetch(host, { headers })).status, 200)
  t.match(origin.seen[0]?.headers, { authorization: 'Bearer of-the-upstream', 'x-api-key': undefined })
})

t.test('without a public URL, a held request has no Location on a virtual host', async t => {
  await gateway.policy({ name: 'held', default: 'Hitl' })
  const made = await createKey((await gateway.agent({ policyName: 'held' })).id)
  const held = await fetch(host, { headers: { 'X-Api-Key': made.key } })
  t.equal(held.status, 202)
  t.equal(held.headers.get('location'), null)
  t.match(await held.text(), /Poll \/hitl\/status\/\S+ at the host of the gateway itself/)
})

/** The status of a call with these lines of its header, as they are. */
function statusOf(...lines: readonly (readonly [string, string])[]): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = ['Host', new URL(host).host, ...lines.flat()]
    get({ port: gateway.port, host: '127.0.0.1', headers }, res => resolve(res.resume().statusCode)).on('error', reject)
  })
}

t.test('the same token twice is one, and another value beside it is refused', async t => {
  const bearer = ['Authorization', `Bearer ${key}`] as const
  const own = ['Gateway-Authorization', `Bearer ${agent.token}`] as const
  t.equal(await statusOf(own, own), 200)
  t.equal(await statusOf(bearer, bearer), 200)
  t.equal(await statusOf(bearer, ['X-Api-Key', key], ['X-Auth-Token', key]), 200)
  t.equal(await statusOf(own, ['Gateway-Authorization', `Bearer ${agent.token}x`]), 401)
  t.equal(await statusOf(bearer, ['Authorization', 'Bearer of-the-upstream']), 401)
  t.equal(await statusOf(bearer, ['Authorization', 'Basic b2Y6dGhlLXVwc3RyZWFt']), 401)
  t.notMatch(JSON.stringify(origin.seen), key.slice(4, 20))
})

t.test('two different keys are refused', async t => {
  const other = await createKey()
  const both = `Basic ${Buffer.from(`${other.key}:${key}`).toString('base64')}`
  t.equal((await fetch(host, { headers: { Authorization: both } })).status, 401)
  t.equal((await fetch(host, { headers: { Authorization: `Bearer ${key}`, 'X-Auth-Token': other.key } })).status, 401)
  const headers = { 'X-Api-Key': key, Authorization: `Bearer ${other.key}` }
  t.equal((await fetch(host, { headers })).status, 401)
  t.strictSame(origin.seen, [])
})

t.test('a key in any other place is refused, and shown nowhere', async t => {
  const stranger = await createKey((await gateway.agent()).id)
  const dotted = (text: string) => text.replace('_', '%5F')
  for (const stray of [key, stranger.key]) {
    const places: readonly (readonly [string, Record<string, string>])[] = [
      [`/?key=${stray}`, {}],
      [`/?a=${dotted(stray)}`, {}],
      [`/bot${stray}/x`, {}],
      ['/', { Cookie: `a=1; b=${stray}` }],
      ['/', { 'X-Thing': stray }],
      ['/', { 'X-Other': basic(stray) }],
    ]
    for (const [path, fields] of places) {
      const answer = await fetch(host + path, { headers: { Authorization: `Bearer ${key}`, ...fields } })
      t.equal(answer.headers.get('gateway-error'), 'token_misplaced', path)
    }
  }
  t.strictSame(origin.seen, [])
})

t.test('what only looks like a key passes', async t => {
  const unknown = `agw_${'x'.repeat(43)}`
  t.equal((await fetch(`${host}/?key=${unknown}`, { headers: { Authorization: `Bearer ${key}` } })).status, 200)
  for (const wrong of [unknown, 'agw_', `${key}A`, key.slice(0, -1), key.toUpperCase()]) {
    t.equal((await fetch(host, { headers: { Authorization: `Bearer ${wrong}` } })).status, 401)
  }
})

t.test('a revoked key is refused in every thread before the answer, and cuts off what is under way', async t => {
  const doomed = await createKey()
  const headers = { Authorization: `Bearer ${doomed.key}` }
  const streams = await Promise.all(Array.from({ length: 6 }, () => fetch(`${host}/stream`, { headers })))
  const kept = await fetch(`${host}/stream`, { headers: { Authorization: `Bearer ${key}` } })
  const broken = streams.map(({ body }) =>
    body?.pipeTo(new WritableStream()).then(
      () => 'ended',
      () => 'cut off',
    ),
  )
  t.equal((await gateway.manage('DELETE', `/keys/${doomed.id}`)).status, 200)
  // New connections are spread over both threads.
  const after = await Promise.all(
    Array.from({ length: 20 }, () => fetch(host, { headers: { ...headers, Connection: 'close' } })),
  )
  t.strictSame([...new Set(after.map(({ status }) => status))], [401])
  t.strictSame([...new Set(await Promise.all(broken))], ['cut off'])
  const reader = kept.body?.getReader()
  t.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), 'begins', 'a stream of another key goes on')
  await reader?.cancel()
})

t.test('what was held for a key that was revoked since is not sent', async t => {
  const policyName = await gateway.policy({ name: 'reviewed', default: 'Hitl' })
  const bot = await gateway.agent({ policyName })
  const [stolen, good] = [await createKey(bot.id), await createKey(bot.id)]
  const hold = async (text: string) => {
    const held = await gateway.proxy(text, `${origin.url}/`, { method: 'POST', body: 'x' })
    return held.headers.get('gateway-hitl-id')
  }
  const ids = [await hold(stolen.key), await hold(good.key), await hold(bot.token)]
  await gateway.manage('DELETE', `/keys/${stolen.id}`)
  const answers = []
  for (const id of ids) answers.push(await gateway.manage('POST', `/hitl/${id}/approve`, {}))
  t.strictSame(
    answers.map(({ status }) => status),
    [409, 200, 200],
  )
  t.match(answers[0]?.text, /key .* has been revoked/)
  t.equal(origin.seen.length, 2)
})

t.test('the log names the key by its id, and never has its text', async t => {
  const made = await createKey()
  await (await fetch(host, { headers: { Authorization: `Bearer ${made.key}` } })).text()
  await (await fetch(`${host}/${made.key}`, { headers: { Authorization: `Bearer ${made.key}` } })).text()
  const lines = () => gateway.log.filter(({ keyId }) => keyId === made.id)
  const found = await eventually(lines, ({ length }) => length === 2)
  // Each thread tells of its own.
  t.strictSame(found.map(({ status }) => status).sort(), [200, 400])
  t.notMatch(JSON.stringify(gateway.log), made.key.slice(4, 20))
})
