/** The first message of TLS is read before a byte of an unopened tunnel is sent. Threat T72. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { type ConnectionOptions, connect } from 'node:tls'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { type ClientHello, ClientHelloReader } from '../../src/intercept/client-hello.ts'
import { runs } from '../fixtures/runs.ts'

const readClientHello = (bytes: Buffer) => new ClientHelloReader().add(bytes)

/** The first bytes that a client of Node sends. */
async function helloOf(t: Test, options: ConnectionOptions): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect({ port, host: '127.0.0.1', ...options }).on('error', () => {})
  const [socket] = await once(server, 'connection')
  const [bytes] = await once(socket, 'data')
  client.destroy()
  socket.destroy()
  return bytes
}

const named = await helloOf(t, { servername: 'api.example.com', ALPNProtocols: ['h2', 'http/1.1'] })

/** The same message in records of so many bytes. */
function divided(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5)
  const parts: Buffer[] = []
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size)
    parts.push(Buffer.from([0x16, 3, 1, part.length >> 8, part.length & 0xff]), part)
  }
  return Buffer.concat(parts)
}

t.test('the name that a client asks for is read, with TLS 1.2 too, and its absence is', async t => {
  t.strictSame(readClientHello(named), { name: 'api.example.com' })
  const old = await helloOf(t, { servername: 'old.example.com', maxVersion: 'TLSv1.2' })
  t.strictSame(readClientHello(old), { name: 'old.example.com' })
  t.strictSame(readClientHello(await helloOf(t, {})), { name: undefined })
})

t.test('a message in several records is read, and each part of it is incomplete', async t => {
  for (const size of [1, 7, 100]) t.strictSame(readClientHello(divided(named, size)), { name: 'api.example.com' })
  for (let length = 0; length < named.length; length++) {
    if (readClientHello(named.subarray(0, length)) !== undefined) t.fail(`${length} bytes`)
  }
  t.ok(named.length > 100)
})

t.test('a message that comes in pieces of any length is read as if it came at once', async t => {
  for (const bytes of [named, divided(named, 1), divided(named, 50)]) {
    for (const size of [1, 3, 64, 1_000]) {
      const reader = new ClientHelloReader()
      const given = Buffer.from(bytes)
      let hello: ClientHello | undefined
      for (let at = 0; at < given.length; at += size) {
        t.equal(hello, undefined)
        hello = reader.add(given.subarray(at, at + size))
      }
      t.strictSame(hello, { name: 'api.example.com' }, `${size}`)
      t.ok(reader.bytes.equals(bytes))
      t.ok(given.equals(bytes), 'the pieces stay as they were')
    }
  }
})

t.test('other protocols and other messages are malformed at once', async t => {
  for (const text of ['GET / HTTP/1.1\r\n', 'SSH-2.0-x\r\n', '\x16\x02\x00', '\x16\x03\x01\x00\x00']) {
    t.equal(readClientHello(Buffer.from(text, 'latin1')), 'malformed', JSON.stringify(text))
  }
  const other = Buffer.from(named)
  other[5] = 2
  t.equal(readClientHello(other), 'malformed')
})

t.test('a message with two names, or a list of two, is malformed', async t => {
  const name = Buffer.from('a.test')
  const entry = (type = 0) => Buffer.concat([Buffer.from([type, 0, name.length]), name])
  const extension = (...entries: Buffer[]) => {
    const list = Buffer.concat(entries)
    return Buffer.concat([Buffer.from([0, 0, 0, list.length + 2, 0, list.length]), list])
  }
  const helloWith = (...extensions: Buffer[]) => {
    const all = Buffer.concat(extensions)
    const body = Buffer.concat([Buffer.alloc(34), Buffer.from([0, 0, 2, 1, 1, 1, 0, 0, all.length]), all])
    const message = Buffer.concat([Buffer.from([1, 0, 0, body.length]), body])
    return Buffer.concat([Buffer.from([0x16, 3, 1, 0, message.length]), message])
  }
  t.strictSame(readClientHello(helloWith(extension(entry()))), { name: 'a.test' })
  t.equal(readClientHello(helloWith(extension(entry()), extension(entry()))), 'malformed')
  t.equal(readClientHello(helloWith(extension(entry(), entry()))), 'malformed')
  t.equal(readClientHello(helloWith(extension(entry(1)))), 'malformed')
  t.strictSame(readClientHello(helloWith()), { name: undefined })
})

t.test('no bytes make it throw', async t => {
  const places = fc.array(fc.tuple(fc.nat(named.length - 1), fc.nat(255)), { maxLength: 8 })
  fc.assert(
    fc.property(places, changes => {
      const changed = Buffer.from(named)
      for (const [at, value] of changes) changed[at] = value
      readClientHello(changed)
    }),
    { numRuns: runs(2_000) },
  )
  t.pass('none did')
})
