/** Threat T37 of SECURITY.md. */
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { createFetch, FetchError } from '../../src/tokens/fetch.ts'

async function serve(t: Test, listener: RequestListener): Promise<URL> {
  const server = createServer(listener)
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  t.teardown(() => server.closeAllConnections())
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/a?b=c`)
}

t.test('a document comes whole, asked for without a body, credentials or compression', async t => {
  const url = await serve(t, (req, res) => res.end(JSON.stringify([req.method, req.url, req.headers])))
  const [method, path, headers] = JSON.parse(Buffer.from(await createFetch()(url)).toString())
  t.strictSame([method, path], ['GET', '/a?b=c'])
  t.strictSame(headers, {
    host: url.host,
    accept: 'application/json',
    'accept-encoding': 'identity',
    connection: 'close',
  })
})

t.test('any answer but 200 is refused, and a redirect is not followed', async t => {
  let calls = 0
  const statuses = [201, 204, 301, 302, 307, 404, 500]
  const url = await serve(t, (_, res) => {
    res.writeHead(statuses[calls++] ?? 200, { Location: '/elsewhere' }).end('{}')
  })
  for (const status of statuses)
    await t.rejects(createFetch()(url), { name: 'FetchError', message: `status ${status}` })
  t.equal(calls, statuses.length)
})

t.test('64 KiB are read, one byte more is not, however it is sent', async t => {
  let size = 65_536
  const url = await serve(t, (req, res) => {
    if (req.url === '/chunked') res.write('x')
    res.end('x'.repeat(req.url === '/chunked' ? size - 1 : size))
  })
  for (const path of ['/', '/chunked']) {
    size = 65_536
    t.equal((await createFetch()(new URL(path, url))).length, size)
    size = 65_537
    await t.rejects(createFetch()(new URL(path, url)), FetchError, path)
  }
})

t.test('a compressed answer is refused', async t => {
  const url = await serve(t, (_, res) => res.writeHead(200, { 'Content-Encoding': 'gzip' }).end('x'))
  await t.rejects(createFetch()(url), { message: 'compressed answer' })
})

t.test('an answer that starts and then stands still is given up on in time', async t => {
  const url = await serve(t, (req, res) => {
    if (req.url === '/body') res.writeHead(200).write('{')
  })
  for (const path of ['/head', '/body']) {
    await t.rejects(createFetch({ timeoutMs: 100 })(new URL(path, url)), { message: /no answer within 100 ms/ })
  }
})

t.test('an answer cut short is refused', async t => {
  const url = await serve(t, (_, res) => {
    res.writeHead(200, { 'Content-Length': '10' })
    res.write('{}', () => res.destroy())
  })
  await t.rejects(createFetch()(url), FetchError)
})

t.test('the checked address is dialled, and the name is still what is asked for', async t => {
  const url = await serve(t, (req, res) => res.end(req.headers.host))
  const named = new URL(`http://idp.invalid:${url.port}/`)
  const asked: string[] = []
  const fetchDocument = createFetch({
    addressOf: async one => {
      asked.push(one.href)
      return '127.0.0.1'
    },
  })
  t.equal(Buffer.from(await fetchDocument(named)).toString(), named.host)
  t.strictSame(asked, [named.href])
})

t.test('what may not be fetched is not connected to', async t => {
  let calls = 0
  const url = await serve(t, (_, res) => {
    calls++
    res.end()
  })
  const refused = createFetch({ addressOf: () => Promise.reject(new TypeError('egress denied')) })
  await t.rejects(refused(url), { name: 'FetchError', message: /egress denied/ })
  const never = createFetch({ addressOf: () => new Promise(() => undefined), timeoutMs: 50 })
  await t.rejects(never(url), { message: /no answer within 50 ms/ })
  t.equal(calls, 0)
})

t.test('a certificate must be trusted, and be for the name that is asked for', async t => {
  const read = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), 'utf8')
  const cert = read('cert')
  const server = createTlsServer({ key: read('key'), cert }, (req, res) => res.end(req.headers.host))
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const addressOf = async () => '127.0.0.1'
  const trusting = createFetch({ addressOf, ca: [cert] })
  t.equal(Buffer.from(await trusting(new URL(`https://idp.test:${port}/`))).toString(), `idp.test:${port}`)
  await t.rejects(trusting(new URL(`https://other.test:${port}/`)), FetchError, 'another name')
  await t.rejects(trusting(new URL(`https://127.0.0.1:${port}/`)), FetchError, 'its address')
  await t.rejects(createFetch({ addressOf })(new URL(`https://idp.test:${port}/`)), FetchError, 'not trusted')
})
