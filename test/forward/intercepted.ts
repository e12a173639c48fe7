/** Requests in tunnels that the gateway opens with CONNECT and reads. */
import { once } from 'node:events'
import t from 'tap'
import { basic, openSecure, openTunnel, secureSetup, startForward, valuesIn } from '../fixtures/forward.ts'
import { eventually, merge } from '../fixtures/gateway.ts'
import { startOrigin, startSecureOrigin } from '../fixtures/origin.ts'
import { scrape } from '../fixtures/scrape.ts'

const hello = 'hello from upstream'
const origin = await startSecureOrigin(t, (req, res) => {
  req.resume().on('end', () => res.writeHead(200, { 'Content-Length': hello.length, Location: '/next' }).end(hello))
})
const plain = await startOrigin(t, (_req, res) => res.writeHead(200, { 'Content-Length': hello.length }).end(hello))
const to = `idp.test:${origin.port}`

t.beforeEach(() => {
  origin.seen.length = 0
  plain.seen.length = 0
})

for (const threads of [1, 2]) {
  t.test(`with ${threads === 1 ? 'one thread' : 'two threads'}`, async t => {
    const config = merge(secureSetup.config ?? {}, { System: { Server: { Threads: threads } } })
    const gateway = await startForward(t, { ...secureSetup, config })
    const { token } = await gateway.agent()
    const authorization = basic('agent', token)

    t.test('a request in TLS reaches the upstream, and its answer is that of the upstream', async t => {
      const client = await openSecure(t, gateway, { to, authorization })
      for (const path of ['/things?x=1', '/more']) {
        client.write(`GET ${path} HTTP/1.1\r\nHost: ${to}\r\nProxy-Authorization: ${authorization}\r\n\r\n`)
        await client.until(new RegExp(`(?:${hello}[^]*){${origin.seen.length + 1}}`))
      }
      t.match(client.text(), /^HTTP\/1\.1 200 /)
      t.strictSame(valuesIn(client.text(), 'Location'), ['/next'])
      t.match(
        origin.seen.map(({ target, headers }) => [target, headers.host]),
        [
          ['/things?x=1', to],
          ['/more', to],
        ],
      )
      t.notOk(origin.seen.some(({ rawHeaders }) => rawHeaders.join().includes('uthorization')))
    })

    t.test('the certificate is for the host alone, and the client may resume its session in any thread', async t => {
      const sessions: Buffer[] = []
      for (let time = 0; time < 6; time++) {
        const session = sessions.at(-1)
        const client = await openSecure(t, gateway, {
          to,
          authorization,
          tls: session === undefined ? {} : { session },
        })
        client.secure.on('session', given => sessions.push(given))
        // Node knows no certificate of a session that was resumed.
        const expected = time === 0 ? 'DNS:idp.test' : undefined
        t.equal(client.secure.getPeerX509Certificate()?.subjectAltName, expected)
        t.equal(client.secure.isSessionReused(), time > 0)
        client.write(`GET / HTTP/1.1\r\nHost: ${to}\r\nConnection: close\r\n\r\n`)
        t.match(await client.closed(), hello)
      }
    })

    t.test('a client may speak in the clear as well, and an address gets a certificate for it', async t => {
      const host = `127.0.0.1:${plain.port}`
      const client = await openTunnel(t, gateway, { to: host, authorization })
      client.write(`POST /clear HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 4\r\n\r\nbody`)
      await client.until(new RegExp(hello))
      t.match(plain.seen, [{ method: 'POST', target: '/clear', headers: { host } }])
      const other = await openSecure(t, gateway, { to: '127.0.0.1:9', authorization })
      t.equal(other.secure.getPeerX509Certificate()?.subjectAltName, 'IP Address:127.0.0.1')
    })

    t.test('bytes that come with the CONNECT are not lost', async t => {
      const host = `127.0.0.1:${plain.port}`
      const request = `GET /early HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
      const connect = `CONNECT ${host} HTTP/1.1\r\nProxy-Authorization: ${authorization}\r\nHost: x\r\n\r\n`
      t.match(await gateway.exchange(t, connect + request), /^HTTP\/1\.1 200 Connection established\r\n\r\n.*hello/s)
      t.match(plain.seen, [{ target: '/early' }])
    })
  })
}

t.test('lines of the log name road and tunnel, and the metrics count tunnels, handshakes and certificates', async t => {
  const gateway = await startForward(t, secureSetup)
  const { token, id } = await gateway.agent()
  const client = await openSecure(t, gateway, { to, authorization: `Bearer ${token}` })
  for (const _ of [1, 2]) {
    client.write(`GET /x HTTP/1.1\r\nHost: ${to}\r\n\r\n`)
    await client.more()
  }
  const lines = await gateway.exchanges(2)
  t.match(lines, [
    { road: 'intercepted', agentId: id, method: 'GET', origin: origin.url, path: '/x', status: 200 },
    { road: 'intercepted', agentId: id },
  ])
  t.type(lines[0]?.tunnel, 'string')
  t.equal(lines[0]?.tunnel, lines[1]?.tunnel)
  const values = async () => scrape((await gateway.manage('GET', '/metrics')).text).values
  const counted = await eventually(values, found => found.get('agent_gateway_leafs_minted_total') === 1)
  t.equal(counted.get('agent_gateway_tunnels{road="intercepted"}'), 1)
  t.equal(counted.get('agent_gateway_client_tls_handshakes_total{session="new"}'), 1)
  client.secure.destroy()
  await once(client.secure, 'close')
  await eventually(values, found => found.get('agent_gateway_tunnels{road="intercepted"}') === 0)
})

t.test('one request counts once against the rate, with its CONNECT', async t => {
  const config = { System: { RateLimit: { RequestsPerMinute: 1, Burst: 2 } } }
  const gateway = await startForward(t, { config })
  const authorization = `Bearer ${(await gateway.agent()).token}`
  const host = `127.0.0.1:${plain.port}`
  const client = await openTunnel(t, gateway, { to: host, authorization })
  for (const status of [200, 200, 429]) {
    client.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    await client.until(new RegExp(`HTTP/1.1 ${status} (?:(?!HTTP/1.1)[^])*$`))
  }
  t.equal(plain.seen.length, 2)
})
