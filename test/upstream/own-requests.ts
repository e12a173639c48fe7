/** Threat T37 of SECURITY.md. */
import { readFileSync } from 'node:fs'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { startOrigin } from '../fixtures/origin.ts'
import { certFile, keyFile } from '../fixtures/origin-http2.ts'
import { type OwnSetup, openOwnRequests } from '../fixtures/own-requests.ts'
import { startRawServer } from '../fixtures/raw.ts'

const never = () => new AbortController().signal
const message = (url: string) => ({ url, headers: ['Content-Type', 'text/plain', 'X-Own', 'yes'], body: 'hé' })
const post = async (t: Test, url: string, setup?: OwnSetup) =>
  (await openOwnRequests(t, setup)).post(message(url), never())
const read = async (t: Test, url: string, setup?: OwnSetup) =>
  Buffer.from(await (await openOwnRequests(t, setup)).fetch(new URL(url))).toString()

t.test('a message arrives as it is, and the status comes back whatever it is', async t => {
  for (const status of [200, 204, 302, 500]) {
    const origin = await startOrigin(t, (_, res) => res.writeHead(status, { Location: '/other' }).end())
    t.equal(await post(t, `${origin.url}/a/b?key=k`), status)
    t.match(origin.seen, [{ method: 'POST', target: '/a/b?key=k', headers: { 'x-own': 'yes', 'content-length': '3' } }])
    t.equal(origin.seen.length, 1)
  }
})

t.test('the answer to a message is not read', async t => {
  const origin = await startOrigin(t, (_, res) => {
    const more = () => {
      while (res.write('x'.repeat(65_536)));
    }
    res.on('drain', more)
    more()
  })
  t.equal(await post(t, origin.url), 200)
  // A reset is how it ends: bytes were still on their way.
  for (const socket of origin.sockets) await new Promise(resolve => socket.once('close', resolve).on('error', () => {}))
})

t.test('a document is read whole, with neither credentials nor compression', async t => {
  const origin = await startOrigin(t, (req, res) => res.end(JSON.stringify([req.method, req.url, req.headers])))
  const [method, path, headers] = JSON.parse(await read(t, `${origin.url}/a?b=c`))
  t.strictSame([method, path], ['GET', '/a?b=c'])
  const { connection, ...own } = headers
  t.strictSame(own, { host: new URL(origin.url).host, accept: 'application/json', 'accept-encoding': 'identity' })
})

t.test('any status but 200 is refused for a document, and a redirect is not followed', async t => {
  const statuses = [201, 204, 301, 302, 307, 404, 500]
  const origin = await startOrigin(t, (req, res) => {
    res.writeHead(Number(req.url?.slice(1)), { Location: '/200' }).end('{}')
  })
  for (const status of statuses) {
    const message = `127.0.0.1: status ${status}`
    await t.rejects(read(t, `${origin.url}/${status}`), { name: 'OwnRequestError', message })
  }
  t.equal(origin.seen.length, statuses.length)
})

t.test('64 KiB of a document are read, one byte more is not, however it is sent', async t => {
  let size = 0
  const origin = await startOrigin(t, (req, res) => {
    if (req.url === '/chunked') res.write('x')
    res.end('x'.repeat(req.url === '/chunked' ? size - 1 : size))
  })
  for (const path of ['/', '/chunked']) {
    size = 65_536
    t.equal((await read(t, origin.url + path)).length, size)
    size = 65_537
    await t.rejects(read(t, origin.url + path), { message: '127.0.0.1: more than 65536 bytes' }, path)
  }
})

t.test('a compressed document is refused', async t => {
  const origin = await startOrigin(t, (_, res) => res.writeHead(200, { 'Content-Encoding': 'gzip' }).end('x'))
  await t.rejects(read(t, origin.url), { message: '127.0.0.1: a compressed answer' })
})

t.test('a document that stands still, or is cut short, is given up', async t => {
  const origin = await startOrigin(t, (req, res) => {
    if (req.url !== '/head') res.writeHead(200, { 'Content-Length': '10' }).write('{}')
    if (req.url === '/short') res.destroy()
  })
  for (const path of ['/head', '/body']) {
    const late = read(t, origin.url + path, { fetchTimeoutMs: 50 })
    await t.rejects(late, { message: '127.0.0.1: no answer within 50 ms' }, path)
  }
  await t.rejects(read(t, `${origin.url}/short`), { message: '127.0.0.1: reset' })
})

t.test('the time limit holds for the look-up, too', async t => {
  const silent = { lookup: () => new Promise<never>(() => {}), fetchTimeoutMs: 20, postTimeoutMs: 20 }
  const late = { message: 'named.example: no answer within 20 ms' }
  await t.rejects(read(t, 'http://named.example/', silent), late)
  await t.rejects(post(t, 'http://named.example/', silent), late)
})

t.test('errors name the host and not the path, which often holds a key', async t => {
  const silent = await startRawServer(t, () => {})
  const late = post(t, `${silent.url}/secret`, { postTimeoutMs: 20 })
  await t.rejects(late, { name: 'OwnRequestError', message: '127.0.0.1: no answer within 20 ms' })
  const closed = post(t, 'http://127.0.0.1:1/secret')
  await t.rejects(closed, { name: 'OwnRequestError', message: '127.0.0.1: refused' })
})

t.test('the end of the gateway ends it, before and after it was sent', async t => {
  const silent = await startRawServer(t, socket => void socket.once('data', () => stop.abort()))
  const stop = new AbortController()
  const stopped = { name: 'OwnRequestError', message: '127.0.0.1: the gateway stopped' }
  const { post } = await openOwnRequests(t)
  await t.rejects(post(message(silent.url), stop.signal), stopped)
  await t.rejects(post(message(silent.url), stop.signal), stopped)
})

t.test('the origin that the operator trusts may be anywhere, for documents alone', async t => {
  const origin = await startOrigin(t)
  const url = `http://idp.internal:${origin.port}/`
  const setup = { trusted: [new URL(url).origin], egress: { DenyHosts: ['idp.internal'], DenyPrivateNetworks: true } }
  t.equal(await read(t, url, setup), 'hello from upstream')
  await t.rejects(post(t, url, setup), { message: /refused by Egress/ })
  await t.rejects(read(t, url.replace('idp', 'other'), setup), { message: /refused by Egress/ })
})

t.test('a certificate must be trusted, and be for the name that is asked for', async t => {
  const ca = readFileSync(certFile, 'utf8')
  const server = createTlsServer({ key: readFileSync(keyFile), cert: ca }, (req, res) => res.end(req.headers.host))
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  t.equal(await read(t, `https://idp.test:${port}/`, { caFile: certFile }), `idp.test:${port}`)
  await t.rejects(
    read(t, `https://other.test:${port}/`, { caFile: certFile }),
    { message: 'other.test: tls' },
    'another name',
  )
  await t.rejects(
    read(t, `https://127.0.0.1:${port}/`, { caFile: certFile }),
    { message: '127.0.0.1: tls' },
    'its address',
  )
  await t.rejects(read(t, `https://idp.test:${port}/`), { message: 'idp.test: tls' }, 'not trusted')
})
