/** Threat T04 of SECURITY.md. One order and one table of failures for everything that leaves the gateway. */

import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import t from 'tap'
import { createOrigin } from '../../src/base/origin.ts'
import { type RefusalCode, refusalKinds } from '../../src/base/refusal-kinds.ts'
import type { LiveSettings } from '../../src/config/live.ts'
import { openUpstreams } from '../../src/gateway/upstreams.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { Lookup } from '../../src/upstream/resolve.ts'
import { createClock } from '../fixtures/clock.ts'
import { startGateway, testConfig } from '../fixtures/gateway.ts'
import { certFile, keyFile } from '../fixtures/origin-http2.ts'
import { startRawServer } from '../fixtures/raw.ts'

const asked: string[] = []
/** While requests are held, each name has an address. */
let isHolding = true
const addresses: Readonly<Record<string, readonly string[]>> = {
  'metadata.example': ['169.254.169.254'],
  'mixed.example': ['127.0.0.1', '169.254.169.254'],
  'nowhere.example': [],
}
const lookup = async (name: string): Promise<readonly string[]> => {
  asked.push(name)
  if (isHolding) return ['127.0.0.1']
  if (name === 'silent.example') throw Object.assign(new Error('no answer'), { code: 'ETIMEOUT' })
  return addresses[name] ?? ['127.0.0.1']
}

const closing = await startRawServer(t, socket => void socket.once('data', () => socket.destroy()))
const talking = await startRawServer(t, socket => void socket.once('data', () => socket.write('SSH-2.0-x\r\n')))
const mute = await startRawServer(t, () => {})
const tls = createServer({ key: readFileSync(keyFile), cert: readFileSync(certFile) }).on('tlsClientError', () => {})
await new Promise<void>(done => tls.listen(0, '127.0.0.1', done))
t.teardown(() => tls.close())

interface Case {
  readonly url: string
  readonly code: RefusalCode
  /** What webhooks and the identity provider report, and the kind in the log if it is one. */
  readonly why: string
}

const denied = (url: string, cause: string): Case => ({
  url,
  code: 'egress_denied',
  why: `refused by Egress, ${cause}`,
})
const failed = (url: string, why: string): Case => ({ url, code: 'upstream_failed', why })

const cases: readonly Case[] = [
  denied('http://denied.example/', 'the host is in Egress:DenyHosts'),
  denied('https://self.example/', 'the origin is in Egress:SelfUrls'),
  denied('http://metadata.google.internal/', 'the host is a metadata service'),
  denied('http://metadata.example/', '169.254.169.254 is metadata'),
  denied('http://mixed.example/', '169.254.169.254 is metadata'),
  denied('http://10.1.2.3/', '10.1.2.3 is in Egress:DenyCidrs'),
  failed('http://nowhere.example/', 'name_not_found'),
  { url: 'http://silent.example/', code: 'upstream_timeout', why: 'name_timeout' },
  failed('http://closed.example:1/', 'refused'),
  failed(`http://closing.example:${closing.port}/`, 'reset'),
  failed(`http://talking.example:${talking.port}/`, 'malformed'),
  failed(`https://untrusted.example:${(tls.address() as AddressInfo).port}/`, 'tls'),
  { url: `http://mute.example:${mute.port}/`, code: 'upstream_timeout', why: 'headers_timeout' },
]

const settings = {
  Egress: { DenyHosts: ['denied.example'], DenyCidrs: ['10.0.0.0/8'], SelfUrls: ['https://self.example'] },
  Proxy: { HeadersTimeoutSeconds: 1 },
  // The clock and the look-ups are those of this thread.
  System: { CircuitBreaker: { Failures: 1_000 }, Server: { Threads: 1 } },
}
const clock = createClock(Date.now())
const gateway = await startGateway(t, { config: settings, clock, lookup })
const { token } = await gateway.agent()
await gateway.policy({ name: 'held', default: 'Hitl' })
const { token: heldToken } = await gateway.agent({ policyName: 'held' })
const own = await openUpstreams(testConfig(settings), gateway.directory, { clock: systemClock, lookup, env: {} })
t.teardown(() => own.connections.close())

const waysOut: Readonly<Record<string, (url: string) => Promise<string>>> = {
  agent: async url => describe(await gateway.proxy(token, url)),
  async approval(url) {
    const answer = held.get(url)
    // What is refused at once is not held.
    if (answer?.status !== 202) return describe(answer)
    return describe(await gateway.manage('POST', `/hitl/${answer.headers.get('gateway-hitl-id')}/approve`))
  },
  webhook: url => reasonOf(own.ownRequests.post({ url, headers: [], body: '' }, new AbortController().signal)),
  identityProvider: url => reasonOf(own.ownRequests.fetch(new URL(url))),
}

const held = new Map<string, Response>()
for (const { url } of cases) held.set(url, await gateway.proxy(heldToken, url))
isHolding = false
// The answers of the resolver are used for half a minute.
clock.advance(31_000)

const describe = (answer?: { readonly status: number; readonly headers: Headers }) =>
  `${answer?.status} ${answer?.headers.get('gateway-error')}`

async function reasonOf(work: Promise<unknown>): Promise<string> {
  try {
    return String(await work)
  } catch (error) {
    return (error as Error).message
  }
}

for (const { url, code, why } of cases) {
  const { hostname } = new URL(url)
  t.test(`every way out says the same of ${hostname}`, async t => {
    const answer = `${refusalKinds[code].status} ${code}`
    const reason = `${hostname}: ${why}`
    const expected = { agent: answer, approval: answer, webhook: reason, identityProvider: reason }
    const outcomes = Object.entries(waysOut).map(async ([way, go]) => [way, await go(url)] as const)
    t.strictSame(Object.fromEntries(await Promise.all(outcomes)), expected)
  })
}

t.test('nothing that is refused by its name was looked up', async t => {
  const refused = ['denied.example', 'self.example', 'metadata.google.internal']
  t.strictSame(
    asked.filter(name => refused.includes(name)),
    [],
  )
})

t.test('the log has the same reason for an agent and for an approved request', async t => {
  for (const { url, why } of cases) {
    const { origin } = new URL(url)
    const lines = gateway.log.filter(line => line['origin'] === origin && line['refusal'] !== undefined)
    const reasons = lines.map(({ failure, cause }) => failure ?? `refused by Egress, ${cause}`)
    t.strictSame(reasons, [why, why], origin)
  }
})

t.test('a short name does not lead to a host that is denied', async t => {
  const system: Lookup = async (name, _signal, mayFind) => (mayFind?.(`${name}.inside.example`) ? ['127.0.0.1'] : [])
  const config = testConfig({ ...settings, Egress: { DenyHosts: ['vault.inside.example'] } })
  const changes: Parameters<LiveSettings['onChange']>[0][] = []
  const onSettings = (change: (typeof changes)[0]) => void changes.push(change)
  const deps = { clock: systemClock, lookup: system, env: {}, onSettings }
  const upstreams = await openUpstreams(config, gateway.directory, deps)
  t.teardown(() => upstreams.connections.close())
  const find = async (host: string) => upstreams.route.find(createOrigin('http', host, 80))
  t.match(await find('vault'), { refusal: 'upstream_failed' })
  t.match(await find('web'), { addresses: ['127.0.0.1'] })
  const next = testConfig({ ...settings, Egress: { DenyHosts: ['web.inside.example'] } })
  for (const change of changes) (await change(next))()
  t.match(await find('web'), { refusal: 'upstream_failed' }, 'after a change of the settings')
  t.match(await find('vault'), { addresses: ['127.0.0.1'] })
})
