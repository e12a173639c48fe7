/** Two gateways on one database: tunnels that one has opened end before a revocation by the other is answered. Threats T02, T15, T70. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { connectBytes, openSecure, openTunnel, startForward } from '../fixtures/forward.ts'
import { answerOf, http2Setup, openHttp2 } from '../fixtures/forward-http2.ts'
import { eventually, merge, onDatabase } from '../fixtures/gateway.ts'
import { secureCaFile, startSecureOrigin } from '../fixtures/origin.ts'
import { startHttp2 } from '../fixtures/origin-http2.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { rawClient } from '../fixtures/raw.ts'
import { testdir } from '../fixtures/testdir.ts'

const ca = fileURLToPath(new URL('../fixtures/ca/', import.meta.url))
// Git keeps no permissions but that to execute.
const keyFile = join(testdir(t), 'key.pem')
writeFileSync(keyFile, readFileSync(join(ca, 'rsa-key.pem')), { mode: 0o600 })
const upstream = await startHttp2(t, stream => {
  stream.respond({ ':status': 200 })
  stream.write('begun')
})
const closed = await startSecureOrigin(t, (_req, res) => void res.write('begun'))
const to = upstream.url.slice('https://'.length)
const opaque = `idp.test:${closed.port}`
const config = merge(onDatabase(await createSchema(t)), {
  // A test asks until something is known.
  System: { RateLimit: { RequestsPerMinute: 1_000_000, Burst: 1_000_000 } },
  ForwardProxy: {
    TunnelHosts: [opaque],
    Ca: { CertificateFile: join(ca, 'rsa.pem'), KeyFile: keyFile },
  },
})
const [a, b] = [await startForward(t, http2Setup(config)), await startForward(t, http2Setup(config))]

/** Every kind of tunnel through the first gateway, each with an answer under way. */
async function openAll(t: Test, token: string) {
  const authorization = `Bearer ${token}`
  const trusted = { ca: readFileSync(join(ca, 'rsa.pem')) }
  const idle = await openSecure(t, a, { to, authorization, tls: trusted })
  const busy = await openSecure(t, a, { to, authorization, tls: trusted })
  busy.write(`GET / HTTP/1.1\r\nHost: ${to}\r\n\r\n`)
  await busy.until(/begun/)
  const http2 = await openHttp2(t, a, { to, authorization, tls: trusted })
  const stream = http2.begin()
  const answer = answerOf(stream)
  await once(stream, 'response')
  const { socket } = await openTunnel(t, a, { to: opaque, authorization })
  socket.removeAllListeners('data')
  const secure = connectTls({ socket, ca: readFileSync(secureCaFile), servername: 'idp.test' })
  const inside = rawClient(secure)
  inside.write(`GET / HTTP/1.1\r\nHost: ${opaque}\r\n\r\n`)
  await inside.until(/begun/)
  return { idle, busy, http2, answer, inside }
}

for (const what of ['agent', 'key'] as const) {
  t.test(
    `T15 T70 a revocation of the ${what} in another gateway ends tunnels, streams and what they carry`,
    async t => {
      const bot = await a.agent()
      const made = JSON.parse((await a.manage('POST', `/agents/${bot.id}/keys`, { name: 'own' })).text)
      const { idle, busy, http2, answer, inside } = await openAll(t, what === 'key' ? made.key : bot.token)
      const path = what === 'key' ? `/keys/${made.id}` : `/agents/${bot.id}/revoke`
      const ended = Promise.all([idle.closed(), busy.closed(), inside.closed(), once(http2.session, 'close'), answer])
      const revoked = await b.manage(what === 'key' ? 'DELETE' : 'POST', path)
      t.match(String(revoked.status), /^20/)
      // The first gateway has no more than this under way once the second has answered.
      t.equal(a.gateway.inFlight(), 0)
      const [, , , , stream] = await ended
      t.not(stream.reset, 0)
      t.match(
        [...upstream.seen].map(({ closed }) => closed !== undefined),
        upstream.seen.map(() => true),
      )
    },
  )
}

t.test('T02 the other gateway is refused as a destination, in tunnels and in absolute form', async t => {
  const authorization = `Bearer ${(await a.agent()).token}`
  for (const port of [b.port, b.forwardPort]) {
    const place = `127.0.0.1:${port}`
    const request = `GET /health HTTP/1.1\r\nHost: ${place}\r\nConnection: close\r\n\r\n`
    const absolute = request.replace('/health', `http://${place}/health`)
    const credential = `Proxy-Authorization: ${authorization}\r\nHost:`
    for (const bytes of [connectBytes({ to: place, authorization }) + request, absolute.replace('Host:', credential)]) {
      // It is known about a second after it has joined.
      const denied = (text: string) => / 403 .*"code":"egress_denied"/s.test(text)
      t.match(await eventually(() => a.exchange(t, bytes), denied), /Gateway-Error: egress_denied/)
    }
  }
})
