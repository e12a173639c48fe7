/** What the gateway makes of bytes in a tunnel that it reads. Threats T20, T40, T42, T71, T72, T73. */
import { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import t, { type Test } from 'tap'
import { basic, openSecure, openTunnel, secureSetup, startForward, valuesIn } from '../fixtures/forward.ts'
import { eventually, merge } from '../fixtures/gateway.ts'
import { startOrigin, startSecureOrigin } from '../fixtures/origin.ts'
import { scrape } from '../fixtures/scrape.ts'

const origin = await startSecureOrigin(t)
const plain = await startOrigin(t)
const rates = { System: { RateLimit: { Burst: 1_000 }, Server: { TrustedProxies: ['127.0.0.1'] } } }
const gateway = await startForward(t, { ...secureSetup, config: merge(secureSetup.config ?? {}, rates) })
const { id, token } = await gateway.agent()
const authorization = basic('agent', token)
const to = `idp.test:${origin.port}`
const clear = `127.0.0.1:${plain.port}`

t.beforeEach(() => {
  origin.seen.length = 0
  plain.seen.length = 0
})

/** What comes for these bytes in TLS. */
async function answerTo(t: Test, bytes: string): Promise<string> {
  const client = await openSecure(t, gateway, { to, authorization })
  client.write(bytes)
  return client.closed()
}

/** Reasons of failed interceptions. */
const failures = ({ log } = gateway) => log.filter(({ message }) => message === 'interception failed')
const failed = async (origin: string, of = gateway) =>
  (
    await eventually(
      () => failures(of).find(line => line.origin === origin),
      line => line !== undefined,
    )
  )?.reason

/** Lines of tunnels that have closed without a request. */
const unused = (origin: string) =>
  gateway.log.filter(line => line.message === 'tunnel without a request' && line.origin === origin)

const others: Readonly<Record<string, string>> = {
  'another host in Host': 'GET / HTTP/1.1\r\nHost: other.test\r\n\r\n',
  'another port in Host': `GET / HTTP/1.1\r\nHost: idp.test:${origin.port + 1}\r\n\r\n`,
  'no port in Host': 'GET / HTTP/1.1\r\nHost: idp.test\r\n\r\n',
  'a URL of another host': `GET https://other.test/ HTTP/1.1\r\nHost: ${to}\r\n\r\n`,
  'a URL of another scheme': `GET http://${to}/ HTTP/1.1\r\nHost: ${to}\r\n\r\n`,
  'a URL without a host': `GET https:///path HTTP/1.1\r\nHost: ${to}\r\n\r\n`,
  'a URL of the host behind another Host': `GET https://${to}/ HTTP/1.1\r\nHost: other.test\r\n\r\n`,
}
for (const [name, bytes] of Object.entries(others)) {
  t.test(`T20 ${name} is 421, and the connection closes`, async t => {
    const answer = await answerTo(t, bytes)
    t.match(answer, /^HTTP\/1\.1 421 Misdirected request\r\n.*"code":"misdirected"/s)
    t.strictSame(valuesIn(answer, 'Connection'), ['close'])
    t.strictSame(origin.seen, [])
  })
}

t.test('T53 the address of a client in a tunnel is that of its CONNECT, whatever its requests say', async t => {
  const fields = 'X-Forwarded-For: 192.0.2.7\r\n'
  const forged = 'GET /forged HTTP/1.1\r\nHost: HOST\r\nX-Forwarded-For: 10.0.0.1\r\nConnection: close\r\n\r\n'
  const secure = await openSecure(t, gateway, { to, authorization, fields })
  secure.write(forged.replace('HOST', to))
  const inClear = await openTunnel(t, gateway, { to: clear, authorization, fields })
  inClear.write(forged.replace('HOST', clear))
  for (const client of [secure, inClear]) t.match(await client.closed(), /hello from upstream/)
  const lines = await eventually(
    () => gateway.log.filter(({ path }) => path === '/forged'),
    ({ length }) => length === 2,
  )
  t.strictSame(
    lines.map(({ clientIp }) => clientIp),
    ['192.0.2.7', '192.0.2.7'],
  )
})

t.test('a URL of the host is served, whatever its letter case', async t => {
  const answer = await answerTo(
    t,
    `GET HTTPS://IDP.test:${origin.port}/a?b HTTP/1.1\r\nHost: IDP.TEST:${origin.port}\r\nConnection: close\r\n\r\n`,
  )
  t.match(answer, /hello from upstream/)
  t.match(origin.seen, [{ target: '/a?b', headers: { host: to } }])
})

t.test('CONNECT and TRACE in a tunnel are 405', async t => {
  for (const line of [`CONNECT ${to}`, 'TRACE /']) {
    const answer = await answerTo(t, `${line} HTTP/1.1\r\nHost: ${to}\r\nConnection: close\r\n\r\n`)
    t.match(answer, /^HTTP\/1\.1 405 .*"code":"method_not_allowed"/s, line)
  }
})

t.test('no path is 400', async t => {
  const answer = await answerTo(t, `OPTIONS * HTTP/1.1\r\nHost: ${to}\r\nConnection: close\r\n\r\n`)
  t.match(answer, /^HTTP\/1\.1 400 .*"code":"invalid_target"/s)
})

t.test('T42 a token in a request of the tunnel is 400, and never sent', async t => {
  for (const fields of [
    `Gateway-Authorization: Bearer ${token}`,
    'Gateway-Authorization: anything',
    `Authorization: Bearer ${token}`,
    `X-Key: ${token}`,
  ]) {
    const answer = await answerTo(t, `GET / HTTP/1.1\r\nHost: ${to}\r\n${fields}\r\nConnection: close\r\n\r\n`)
    t.match(answer, /^HTTP\/1\.1 400 .*"code":"token_misplaced"/s, fields.slice(0, 30))
  }
  t.strictSame(origin.seen, [])
})

t.test('T02 the gateway itself is refused inside of the tunnel', async t => {
  for (const port of [gateway.port, gateway.forwardPort]) {
    const client = await openSecure(t, gateway, { to: `127.0.0.1:${port}`, authorization })
    client.write(`GET /health HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`)
    t.match(await client.closed(), /^HTTP\/1\.1 403 .*"code":"egress_denied"/s)
  }
})

t.test('T20 a name in TLS that is not that of CONNECT closes the connection, also of a resumed session', async t => {
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    const first = await openSecure(t, gateway, { to, authorization, tls: { maxVersion } })
    const sessions: Buffer[] = []
    first.secure.on('session', given => sessions.push(given))
    first.write(`GET / HTTP/1.1\r\nHost: ${to}\r\nConnection: close\r\n\r\n`)
    await first.closed()
    const other = { maxVersion, servername: 'other.test', checkServerIdentity: () => undefined }
    for (const session of [undefined, sessions.at(-1)]) {
      const tls = session === undefined ? other : { ...other, session }
      const client = await openSecure(t, gateway, { to, authorization, tls }).catch(() => undefined)
      client?.write(`GET / HTTP/1.1\r\nHost: ${to}\r\n\r\n`)
      t.equal((await client?.closed()) ?? '', '', `${maxVersion} ${session === undefined ? 'new' : 'resumed'}`)
    }
  }
  t.equal(await failed(origin.url), 'sni mismatch')
  t.equal(origin.seen.length, 2)
})

t.test('without a name in TLS the certificate is that of the host of CONNECT', async t => {
  const tls = { servername: '', checkServerIdentity: () => undefined }
  const { secure } = await openSecure(t, gateway, { to, authorization, tls })
  t.equal(secure.getPeerX509Certificate()?.subjectAltName, 'DNS:idp.test')
})

t.test('a client that does not offer HTTP/1.1 gets the alert of TLS, and the log says it', async t => {
  const host = 'h2.test:443'
  await t.rejects(openSecure(t, gateway, { to: host, authorization, tls: { ALPNProtocols: ['h2'] } }), {
    message: /no application protocol/,
  })
  t.match(await failed('https://h2.test'), /does not offer HTTP\/1\.1; Proxy:Http2Hosts .*ForwardProxy:TunnelHosts/)
})

t.test('a client that does not trust the CA leaves a warning with the remedy, once a minute and host', async t => {
  for (const _ of [1, 2]) {
    const asked = { to: 'distrusted.test:443', authorization, tls: { ca: [] } }
    await t.rejects(openSecure(t, gateway, asked), { code: /SELF_SIGNED|UNABLE_TO/ })
  }
  await eventually(
    () => unused('https://distrusted.test'),
    both => both.length === 2,
  )
  t.match(await failed('https://distrusted.test'), /may not trust the CA: give it .*ForwardProxy:TunnelHosts/)
  const [line, ...more] = failures().filter(({ origin }) => origin === 'https://distrusted.test')
  t.equal(line?.agentId, id)
  t.strictSame(more, [])
})

t.test('a client that leaves right after the handshake, without a request, leaves the same warning', async t => {
  const { secure } = await openSecure(t, gateway, { to: 'left.test:443', authorization })
  secure.end()
  t.match(await failed('https://left.test'), /^the client broke off when it saw the certificate/)
})

t.test('a client that refuses the CA by an alert of TLS, as OpenSSL does, is told apart in the log', async t => {
  const { promise: hello, resolve } = Promise.withResolvers<Buffer>()
  const sent = new Duplex({ read() {}, write: (bytes: Buffer) => resolve(bytes) })
  connectTls({ socket: sent, servername: 'alert.test', maxVersion: 'TLSv1.2' }).on('error', () => {})
  const client = await openTunnel(t, gateway, { to: 'alert.test:443', authorization })
  client.write(await hello)
  await client.until(/\r\n\r\n./s)
  const unknownCa = Buffer.of(0x15, 3, 3, 0, 2, 2, 48)
  client.write(unknownCa)
  t.match(await failed('https://alert.test'), /^the client does not trust the CA: give it .*ForwardProxy:TunnelHosts/)
})

t.test('a tunnel that closes without a request leaves one line, with the cause where it is known', async t => {
  const lines = (origin: string) =>
    eventually(
      () => unused(origin),
      found => found.length > 0,
    )
  const { socket } = await openTunnel(t, gateway, { to: 'unused.test:443', authorization })
  socket.destroy()
  const silent = { agentId: id, clientIp: '127.0.0.1', method: 'CONNECT', road: 'intercepted', status: 200 }
  const [line, ...more] = await lines('https://unused.test')
  t.match(line, { ...silent, requestId: /./, cause: undefined })
  t.strictSame(more, [])
  const asked = { to: 'unknown-ca.test:443', authorization, tls: { ca: [] } }
  await t.rejects(openSecure(t, gateway, asked), { code: /SELF_SIGNED|UNABLE_TO/ })
  t.match(await lines('https://unknown-ca.test'), [{ ...silent, cause: /may not trust the CA/ }])
  const before = unused(origin.url).length
  const used = await openSecure(t, gateway, { to, authorization })
  used.write(`GET / HTTP/1.1\r\nHost: ${to}\r\nConnection: close\r\n\r\n`)
  await used.closed()
  t.equal(unused(origin.url).length, before)
})

t.test('T73 no certificate is made before a client has sent a ClientHello for the host', async t => {
  const own = await startForward(t, secureSetup)
  const bearer = `Bearer ${(await own.agent()).token}`
  const minted = async () =>
    scrape((await own.manage('GET', '/metrics')).text).values.get('agent_gateway_leafs_minted_total')
  const unreadable: Readonly<Record<string, string>> = {
    'another.test': '\x16\x03\x01\x00\x04\x02\x00\x00\x00',
    'long.test': `\x16\x03\x01\x40\x00\x01\x00\xff\xff${'x'.repeat(16_380)}`,
  }
  for (const [host, bytes] of Object.entries(unreadable)) {
    const client = await openTunnel(t, own, { to: `${host}:443`, authorization: bearer })
    client.write(Buffer.from(bytes, 'latin1'))
    t.match(await client.closed(), /^HTTP\/1\.1 200 Connection established\r\n\r\n$/)
    t.equal(await failed(`https://${host}`, own), 'the ClientHello cannot be read')
  }
  for (const servername of ['one.test', 'two.test']) {
    const asked = { to: 'named.test:443', authorization: bearer, tls: { servername } }
    await t.rejects(openSecure(t, own, asked))
  }
  const client = await openTunnel(t, own, { to: 'silent.test:443', authorization: bearer })
  client.write('\x16')
  await openSecure(t, own, { to, authorization: bearer })
  t.equal(await eventually(minted, count => count !== 0), 1)
})

t.test('bytes that are neither TLS nor HTTP are 400, and the log says it', async t => {
  const client = await openTunnel(t, gateway, { to: '127.0.0.1:22', authorization })
  client.write('SSH-2.0-OpenSSH_9.2\r\n')
  t.match(await client.closed(), /\r\n\r\nHTTP\/1\.1 400 .*"code":"invalid_request"/s)
  t.equal(await failed('http://127.0.0.1:22'), 'not http')
})

t.test('a client that sends nothing, or half a handshake, is closed after HeadersTimeoutSeconds', async t => {
  const config = { System: { Server: { HeadersTimeoutSeconds: 1 } } }
  const quick = await startForward(t, { config })
  const own = `Bearer ${(await quick.agent()).token}`
  for (const bytes of ['', '\x16\x03\x01', 'GET /']) {
    const client = await openTunnel(t, quick, { to: clear, authorization: own })
    if (bytes !== '') client.write(Buffer.from(bytes, 'latin1'))
    t.notMatch(await client.closed(), /HTTP\/1\.1 2(?!00 Connection)/)
  }
  const silent = await openSecure(t, quick, { to: clear, authorization: own })
  t.notMatch(await silent.closed(), /HTTP\/1\.1 2/)
})

t.test('a connection on which no further request comes is closed after ForwardProxy:KeepAliveSeconds', async t => {
  const quick = await startForward(t, { config: { ForwardProxy: { KeepAliveSeconds: 1 } } })
  const client = await openTunnel(t, quick, { to: clear, authorization: `Bearer ${(await quick.agent()).token}` })
  client.write(`GET / HTTP/1.1\r\nHost: ${clear}\r\n\r\n`)
  t.match(await client.closed(), /hello from upstream/)
})

t.test('T20 a request that is smuggled behind another is read as the second one, with its own decision', async t => {
  await gateway.policy({
    name: 'no-posts',
    default: 'Allow',
    rules: [{ name: 'posts', effect: 'Deny', conditions: [{ field: 'input.method', operator: 'eq', value: 'POST' }] }],
  })
  const bot = await gateway.agent({ policyName: 'no-posts' })
  const client = await openSecure(t, gateway, { to, authorization: `Bearer ${bot.token}` })
  const second = `POST /second HTTP/1.1\r\nHost: ${to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`
  client.write(`GET /first HTTP/1.1\r\nHost: ${to}\r\n\r\n${second}`)
  t.match(await client.closed(), /^HTTP\/1\.1 200 .*HTTP\/1\.1 403 .*"code":"policy_denied"/s)
  t.match(origin.seen, [{ target: '/first' }])
})
