/** Settings that change while two threads serve. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { eventually, startGateway, type Tree } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'
import { testdir } from '../fixtures/testdir.ts'

const directory = testdir(t, { policies: {} })
const key = (text: string) => writeFileSync(join(directory, 'key'), text, { mode: 0o600 })
key('first')
const [origin, hook] = [await startOrigin(t), await startOrigin(t)]
let found: Tree = {}
const upstream = { Host: `127.0.0.1:${origin.port}`, AllowHttp: true, Header: 'X-Key', ValueFromFile: 'key' }
const gateway = await startGateway(t, {
  ...{ directory, reloaded: () => found, alone: 'the settings of one gateway change' },
  config: { System: { Server: { Threads: 2 }, RateLimit: { Burst: 100_000 } }, Upstreams: [upstream] },
})
const reload = async (settings: Tree) => {
  found = settings
  return gateway.gateway.reload()
}
const bot = await gateway.agent({ policyName: 'allow-all' })
/** The answers to calls on connections of their own, which both threads take. */
const statuses = async (target = `${origin.url}/`) => {
  const calls = Array.from({ length: 12 }, () =>
    gateway.proxy(bot.token, target, { headers: { Connection: 'close' } }).then(({ status }) => status),
  )
  return [...new Set(await Promise.all(calls))]
}

t.test(
  'T51: what Egress refuses holds in all threads once the reload is answered, and no longer after the next',
  async t => {
    t.strictSame(await statuses(), [200])
    t.equal(await reload({ Egress: { DenyCidrs: ['127.0.0.1/32'] } }), true)
    t.strictSame(await statuses(), [403])
    t.match(
      gateway.log.findLast(({ message }) => message.startsWith('settings reloaded')),
      {
        message: 'settings reloaded: Egress:DenyCidrs',
      },
    )
    t.equal(await reload({}), true)
    t.strictSame(await statuses(), [200])
  },
)

const notReloaded = 'settings and credentials were not reloaded, the old ones stay'

t.test('a mistake anywhere leaves everything as it was', async t => {
  const denied = { Egress: { DenyCidrs: ['127.0.0.1/32'] } }
  for (const mistake of [
    { Risk: { Hours: 'always' } },
    { Upstreams: [{ ...upstream, ValueFromFile: 'missing' }] },
    { HumanInTheLoop: { Webhooks: [{ Url: 'http://169.254.169.254/' }] } },
    {
      Hosts: [{ Host: 'a.example', Upstream: 'https://b.example' }],
      System: { Server: { AllowedHosts: ['a.example'] } },
    },
  ]) {
    const before = gateway.log.length
    t.equal(await reload({ ...denied, ...mistake }), false)
    t.equal(gateway.log.slice(before).find(({ level }) => level === 'error')?.message, notReloaded)
    t.strictSame(await statuses(), [200], JSON.stringify(mistake))
  }
})

t.test('a mounted secret that vanishes costs no request and keeps its value, until it is there again', async t => {
  const sent = () => new Set(origin.seen.slice(-12).map(({ headers }) => headers['x-key']))
  rmSync(join(directory, 'key'))
  t.strictSame(await statuses(), [200])
  t.equal(await reload({}), false)
  t.match(gateway.log.findLast(({ level }) => level === 'error')?.error, { message: /key does not exist/ })
  t.strictSame([await statuses(), sent()], [[200], new Set(['first'])])
  key('again')
  t.equal(await reload({}), true)
  t.strictSame([await statuses(), sent()], [[200], new Set(['again'])])
})

t.test('virtual hosts and credentials come and go', async t => {
  key('second')
  t.equal(await reload({ Hosts: [{ Host: 'api.local', Upstream: origin.url }] }), true)
  const client = await openRaw(t, gateway.port)
  client.write(
    `GET /through HTTP/1.1\r\nHost: api.local\r\nGateway-Authorization: Bearer ${bot.token}\r\nConnection: close\r\n\r\n`,
  )
  const answer = await client.closed()
  t.match(answer, /^HTTP\/1\.1 200/)
  t.match(origin.seen.at(-1), { target: '/through', headers: { 'x-key': 'second' } })
  t.equal(await reload({ Upstreams: [] }), true)
  t.strictSame(await statuses(), [200])
  t.equal(origin.seen.at(-1)?.headers['x-key'], undefined)
})

t.test('the threshold of the risk score and the times of a review are those of now', async t => {
  const Risk = { Signals: { 'private-address': 100 } }
  t.equal(await reload({ Risk, HumanInTheLoop: { Threshold: 0.1, TimeoutSeconds: 77 } }), true)
  t.strictSame(await statuses(), [202])
  const held = await gateway.proxy(bot.token, `${origin.url}/`, { headers: { Accept: 'application/json' } })
  const { expiresAt } = (await held.json()) as { expiresAt: string }
  t.ok(Date.parse(expiresAt) - Date.now() <= 77_000, expiresAt)
})

t.test('events go to a webhook that was added', async t => {
  const Webhooks = [{ Url: `${hook.url}/a` }]
  const Risk = { Signals: { 'private-address': 100 } }
  t.equal(await reload({ Risk, HumanInTheLoop: { Threshold: 0.1, Webhooks } }), true)
  await gateway.proxy(bot.token, `${origin.url}/`)
  await eventually(
    () => hook.seen.length,
    count => count > 0,
  )
  t.equal(await reload({}), true)
})

t.test('a rate holds from the next request on, and what needs a restart is named', async t => {
  t.equal(
    await reload({ System: { RateLimit: { RequestsPerMinute: 1, Burst: 1 }, Server: { DrainSeconds: 9 } } }),
    true,
  )
  t.ok((await statuses()).includes(429))
  t.strictSame(gateway.gateway.needRestart(), ['System:Server:DrainSeconds'])
  t.match(
    gateway.log.findLast(({ message }) => message.includes('need a restart')),
    {
      ...{ level: 'warn', message: 'changed settings that need a restart: System:Server:DrainSeconds' },
    },
  )
})
