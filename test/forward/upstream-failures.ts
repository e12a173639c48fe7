/** Upstreams that cannot be reached, or not be trusted, as a client in a tunnel finds them. Threat T42. */
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { SecureContext } from 'node:tls'
import t from 'tap'
import { createLeafs } from '../../src/intercept/leafs.ts'
import { openStoredAuthority } from '../../src/intercept/stored-authority.ts'
import { createClock } from '../fixtures/clock.ts'
import { connectBytes, openSecure, startForward } from '../fixtures/forward.ts'
import { startFullAddress } from '../fixtures/full-address.ts'
import { testdir } from '../fixtures/testdir.ts'

const monthMs = 30 * 86_400_000
const ticketKeys = Buffer.alloc(48, 7)

/** Certificates of an authority, some of them issued in the past. */
async function openIssuer() {
  const authority = await openStoredAuthority(testdir(t), Date.now() - 2 * monthMs)
  const leafsAt = (now: number) => createLeafs({ authority, clock: createClock(now), ticketKeys })
  const [fresh, old] = [await leafsAt(Date.now()), await leafsAt(Date.now() - monthMs)]
  return { bundle: authority.bundle, fresh, old }
}

const [trusted, unknown] = [await openIssuer(), await openIssuer()]
const certificates: Readonly<Record<string, SecureContext>> = {
  'sound.test': await trusted.fresh.contextFor('sound.test', 'x'),
  'expired.test': await trusted.old.contextFor('expired.test', 'x'),
  'wrong.test': await trusted.fresh.contextFor('sound.test', 'x'),
  'unknown.test': await unknown.fresh.contextFor('unknown.test', 'x'),
  'mutual.test': await trusted.fresh.contextFor('mutual.test', 'x'),
}

let requests = 0
async function startUpstream(requestCert: boolean): Promise<number> {
  const server = createServer(
    {
      requestCert,
      rejectUnauthorized: true,
      SNICallback: (name, done) => done(null, certificates[name]),
    },
    (_req, res) => {
      requests += 1
      res.end('hello from upstream')
    },
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

const { place: full } = await startFullAddress(t)
const [port, mutual] = [await startUpstream(false), await startUpstream(true)]
const folder = testdir(t, { 'upstreams.pem': trusted.bundle })
const gateway = await startForward(t, {
  lookup: async () => ['127.0.0.1'],
  config: {
    Proxy: { CaFile: join(folder, 'upstreams.pem'), ConnectTimeoutSeconds: 1 },
    ForwardProxy: { TunnelHosts: [full] },
  },
})
const authorization = `Bearer ${(await gateway.agent()).token}`

async function answerOf(host: string, at: number): Promise<string> {
  const to = `${host}:${at}`
  const client = await openSecure(t, gateway, { to, authorization })
  client.write(`GET / HTTP/1.1\r\nHost: ${to}\r\nConnection: close\r\n\r\n`)
  return client.closed()
}

t.test('T42 a certificate that has expired, of another host or of an unknown authority is 502', async t => {
  for (const host of ['expired.test', 'wrong.test', 'unknown.test']) {
    t.match(await answerOf(host, port), /^HTTP\/1\.1 502 .*"code":"upstream_failed"/s, host)
  }
  t.equal(requests, 0)
  t.match(await answerOf('sound.test', port), /^HTTP\/1\.1 200 .*hello from upstream/s)
})

t.test('an upstream that asks for a certificate of its client is 502, and the log has the remedy', async t => {
  t.match(await answerOf('mutual.test', mutual), /^HTTP\/1\.1 502 .*"code":"upstream_failed"/s)
  const line = (await gateway.exchanges(5)).at(-1)
  t.match(line, { road: 'intercepted', status: 502, failure: 'tls', cause: /ForwardProxy:TunnelHosts/ })
  t.equal(requests, 1)
})

t.test('an upstream that takes no connection in time is 504, in place of a tunnel', async t => {
  const answer = await gateway.exchange(t, connectBytes({ to: full, authorization }))
  t.match(answer, /^HTTP\/1\.1 504 .*"code":"upstream_timeout"/s)
})
