import type { Test } from 'tap'
import t from 'tap'
import { Connections } from '../../src/upstream/connections.ts'
import { createEgress } from '../../src/upstream/egress.ts'
import type { PosterParts } from '../../src/upstream/post.ts'
import { createPoster } from '../../src/upstream/post.ts'
import { createResolver } from '../../src/upstream/resolve.ts'
import { createClock } from '../fixtures/clock.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { startRawServer } from '../fixtures/raw.ts'

const egressSettings = {
  DenyPrivateNetworks: false,
  AllowHosts: [],
  DenyHosts: ['denied.example'],
  AllowCidrs: [],
  DenyCidrs: [],
  SelfUrls: [],
}

function poster(t: Test, more: Partial<PosterParts> & { readonly addresses?: readonly string[] } = {}) {
  const clock = createClock()
  const limits = { perOrigin: 1, total: 1, maxWaiting: 0, waitMs: 1, idleTimeoutMs: 1_000, eventStreamIdleMs: 1_000 }
  const connections = new Connections(
    { ...limits, http2Hosts: [], connectTimeoutMs: 1_000, headersTimeoutMs: 60_000 },
    clock,
  )
  t.teardown(() => connections.close())
  const { addresses = ['127.0.0.1'], ...rest } = more
  const resolver = createResolver({ clock, lookup: async () => addresses })
  return createPoster({ connections, resolver, egress: createEgress(egressSettings), ...rest })
}

const never = () => new AbortController().signal
const message = (url: string) => ({ url, headers: ['Content-Type', 'text/plain', 'X-Own', 'yes'], body: 'hé' })

t.test('a message arrives as it is, and the status comes back whatever it is', async t => {
  for (const status of [200, 204, 302, 500]) {
    const origin = await startOrigin(t, (_, res) => res.writeHead(status, { Location: '/other' }).end())
    t.equal(await poster(t).post(message(`${origin.url}/a/b?key=k`), never()), status)
    t.match(origin.seen, [{ method: 'POST', target: '/a/b?key=k', headers: { 'x-own': 'yes', 'content-length': '3' } }])
    t.equal(origin.seen.length, 1)
  }
})

t.test('an answer without end is not read', async t => {
  const origin = await startOrigin(t, (_, res) => {
    const more = () => {
      while (res.write('x'.repeat(65_536)));
    }
    res.on('drain', more)
    more()
  })
  t.equal(await poster(t).post(message(origin.url), never()), 200)
  // A reset is how it ends: bytes were still on their way.
  for (const socket of origin.sockets) await new Promise(resolve => socket.once('close', resolve).on('error', () => {}))
})

t.test('a name is looked up, and each of its addresses must be allowed', async t => {
  const origin = await startOrigin(t)
  const url = `http://hook.example:${origin.port}/secret`
  t.equal(await poster(t).post(message(url), never()), 200)
  const refused = poster(t, { addresses: ['127.0.0.1', '169.254.169.254'] }).post(message(url), never())
  await t.rejects(refused, { name: 'PostError', message: 'hook.example: refused by Egress' })
  const unknown = poster(t, { addresses: [] }).post(message(url), never())
  await t.rejects(unknown, { name: 'PostError', message: 'hook.example: no address found' })
  t.equal(origin.connections(), 1)
})

t.test('no answer in time, a reset and a closed port are errors that do not name the path', async t => {
  const silent = await startRawServer(t, () => {})
  const resetting = await startRawServer(t, socket => void socket.once('data', () => socket.destroy()))
  const late = poster(t, { timeoutMs: 20 }).post(message(`${silent.url}/secret`), never())
  await t.rejects(late, { name: 'PostError', message: '127.0.0.1: no answer within 20 ms' })
  const reset = poster(t).post(message(`${resetting.url}/secret`), never())
  await t.rejects(reset, { name: 'PostError', message: '127.0.0.1: reset' })
  const closed = poster(t).post(message('http://127.0.0.1:1/secret'), never())
  await t.rejects(closed, { name: 'PostError', message: '127.0.0.1: ECONNREFUSED' })
})

t.test('the end of the gateway ends it, before and after it was sent', async t => {
  const silent = await startRawServer(t, socket => void socket.once('data', () => stop.abort()))
  const stop = new AbortController()
  const stopped = { name: 'PostError', message: '127.0.0.1: the gateway stopped' }
  await t.rejects(poster(t).post(message(silent.url), stop.signal), stopped)
  await t.rejects(poster(t).post(message(silent.url), stop.signal), stopped)
})

t.test('what shows without a look-up is refused before anything is sent', async t => {
  const { check } = poster(t)
  t.equal(check('https://hook.example/x'), undefined)
  t.equal(check('http://10.0.0.1/x'), undefined)
  for (const url of ['https://denied.example/', 'http://169.254.169.254/', 'http://2852039166/', 'http://[fe80::1]/'])
    t.match(check(url), { refusal: 'egress_denied' }, url)
})
