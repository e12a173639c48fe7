import { once } from 'node:events'
import { chmodSync, copyFileSync, readFileSync } from 'node:fs'
import { Agent } from 'node:https'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { callSecurely } from '../fixtures/call.ts'
import { startBare } from '../fixtures/gateway.ts'
import { openRaw } from '../fixtures/raw.ts'
import { testdir } from '../fixtures/testdir.ts'

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url))
const ca = [readFileSync(fixture('cert.pem')), readFileSync(fixture('renewed-cert.pem'))]

/** Puts a certificate and its key where the gateway looks for them. */
function place(directory: string, certificate: string, key = certificate.replace('cert', 'key')): void {
  copyFileSync(fixture(certificate), join(directory, 'cert.pem'))
  copyFileSync(fixture(key), join(directory, 'key.pem'))
  chmodSync(join(directory, 'key.pem'), 0o600)
}

const Tls = { CertificateFile: 'cert.pem', KeyFile: 'key.pem' }

async function startSecure(t: Test, directory: string, more: object = {}) {
  const gateway = await startBare(t, { config: { System: { Server: { Tls, ...more } } }, directory })
  const [address] = gateway.addresses
  return { ...gateway, url: address?.url ?? '', port: address?.port ?? 0 }
}

function directoryWith(t: Test, certificate: string): string {
  const directory = testdir(t, { policies: {} })
  place(directory, certificate)
  return directory
}

t.test('with a certificate, TCP is TLS and HTTP/1.1', async t => {
  const { port, url, gateway } = await startSecure(t, directoryWith(t, 'cert.pem'))
  t.equal(url, `https://127.0.0.1:${port}`)
  const answer = await callSecurely({
    port,
    ca,
    servername: 'idp.test',
    path: '/health',
    ALPNProtocols: ['h2', 'http/1.1'],
  })
  t.match(answer, { status: 200, peer: { name: 'CN=idp.test', protocol: 'TLSv1.3', alpn: 'http/1.1' } })
  const old = { port, ca, servername: 'idp.test', path: '/health' }
  t.match(await callSecurely({ ...old, maxVersion: 'TLSv1.2' }), { status: 200, peer: { protocol: 'TLSv1.2' } })
  const oldest = callSecurely({ ...old, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' })
  await t.rejects(oldest, 'TLS 1.1 is not spoken')
  t.match(gateway.summary.find(([name]) => name === 'Certificate')?.[1], /^DNS:idp\.test, valid until \d{4}-/)
})

t.test('a client that speaks no TLS, or none to the end, is closed without an answer', async t => {
  const { port } = await startSecure(t, directoryWith(t, 'cert.pem'), { HeadersTimeoutSeconds: 1 })
  const plain = await openRaw(t, port)
  plain.write('GET /health HTTP/1.1\r\nHost: g\r\n\r\n')
  t.notMatch(await plain.closed(), /HTTP/)
  const silent = await openRaw(t, port)
  t.equal(await silent.closed(), '')
  t.match(await callSecurely({ port, ca, servername: 'idp.test', path: '/health' }), { status: 200 })
})

t.test('a renewed certificate is taken at a reload; connections that are open stay', async t => {
  const { directory, gateway, port, log } = await startSecure(t, directoryWith(t, 'cert.pem'))
  const health = (servername: string) => callSecurely({ port, ca, servername, path: '/health' })
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const overOld = () => callSecurely({ port, ca, servername: 'idp.test', path: '/health', agent })
  t.match(await overOld(), { peer: { name: 'CN=idp.test' } })
  place(directory, 'renewed-cert.pem')
  t.equal(await gateway.reload(), true)
  t.match(await health('renewed.test'), { status: 200, peer: { name: 'CN=renewed.test', protocol: 'TLSv1.3' } })
  t.match(
    log.findLast(({ level }) => level === 'info'),
    { message: /^certificate reloaded: DNS:renewed\.test, / },
  )
})

t.test('a pair that cannot be used leaves the old one in force, and the log says why', async t => {
  const { directory, gateway, port, log } = await startSecure(t, directoryWith(t, 'cert.pem'))
  place(directory, 'renewed-cert.pem', 'key.pem')
  t.equal(await gateway.reload(), false)
  const last = log.findLast(({ level }) => level === 'error')
  t.match(last, {
    message: 'the certificate could not be reloaded; the old one stays in use',
    error: { message: /the key in \S+\/key\.pem does not belong to the certificate in \S+\/cert\.pem\.$/ },
  })
  const answer = await callSecurely({ port, ca, servername: 'idp.test', path: '/health' })
  t.match(answer, { status: 200, peer: { name: 'CN=idp.test' } })
})

t.test('an idle connection is closed over TLS too', async t => {
  const { port } = await startSecure(t, directoryWith(t, 'cert.pem'), { KeepAliveSeconds: 1 })
  const socket = connect({ port, host: '127.0.0.1', ca, servername: 'idp.test' })
  await once(socket, 'secureConnect')
  socket.write('GET /health HTTP/1.1\r\nHost: g\r\n\r\n')
  const [answer] = await once(socket, 'data')
  t.match(String(answer), /^HTTP\/1\.1 200 OK/)
  await once(socket, 'end')
})
