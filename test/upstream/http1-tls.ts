/** Threat T42 of SECURITY.md, and bodies over TLS: what is read into one buffer for all connections stays whole. */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls'
import t, { type Test } from 'tap'
import { parseHostPatterns } from '../../src/base/host.ts'
import { behaviour } from '../fixtures/engine.ts'
import { certFile, keyFile } from '../fixtures/origin-http2.ts'
import { openOwnRequests } from '../fixtures/own-requests.ts'
import { startRawServer } from '../fixtures/raw.ts'
import { ask, openConnections, Told } from '../fixtures/upstream.ts'

const cert = readFileSync(certFile, 'utf8')
const key = readFileSync(keyFile, 'utf8')
const secure = { scheme: 'https', host: 'idp.test' } as const
const whole = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const once200 = 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok'

/** An upstream at idp.test. Connections that came as far as TLS, and whether each resumed a session. */
async function startSecure(t: Test, onConnection: (socket: TLSSocket) => void, options: TlsOptions = {}) {
  const resumed: boolean[] = []
  const open = new Set<Socket>()
  const server = createServer({ cert, key, ...options }, socket => {
    resumed.push(socket.isSessionReused())
    socket.on('error', () => {})
    onConnection(socket)
  })
  server.on('connection', socket => open.add(socket)).on('tlsClientError', () => {})
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, resumed }
}

const answering = (text: string) => (socket: TLSSocket) => void socket.on('data', () => socket.write(text))

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  behaviour(t, `a session is resumed, over ${version}, and for another name there is none`, async t => {
    const options = { minVersion: version, maxVersion: version }
    const { port, resumed } = await startSecure(t, answering(once200), options)
    const connections = openConnections(t, { ca: cert })
    for (let i = 0; i < 3; i++) t.equal((await ask(connections, port, secure).over).outcome, '200 ok')
    t.strictSame(resumed, [false, true, true])
    const other = ask(connections, port, { scheme: 'https', host: 'other.test' })
    t.equal((await other.over).outcome, 'ERR_TLS_CERT_ALTNAME_INVALID')
    t.equal(other.control, undefined, 'nothing was sent')
    const bare = ask(connections, port, { scheme: 'https' })
    t.equal((await bare.over).outcome, 'ERR_TLS_CERT_ALTNAME_INVALID')
    t.equal(connections.size, 0)
  })
}

behaviour(
  t,
  'an authority that is not trusted is none, and one trusted elsewhere in the process is not trusted here',
  async t => {
    const { port } = await startSecure(t, answering(whole))
    t.equal((await ask(openConnections(t, { ca: cert }), port, secure).over).outcome, '200 ok')
    const connections = openConnections(t)
    for (let i = 0; i < 2; i++) {
      const told = ask(connections, port, secure)
      t.equal((await told.over).outcome, 'DEPTH_ZERO_SELF_SIGNED_CERT')
      t.equal(told.control, undefined, 'nothing was sent')
    }
    t.equal(connections.size, 0)
  },
)

behaviour(
  t,
  'NODE_TLS_REJECT_UNAUTHORIZED=0 makes no certificate trusted, nor one of an identity provider',
  async t => {
    const { port } = await startSecure(t, answering(whole))
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    t.teardown(() => delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'])
    const told = ask(openConnections(t), port, secure)
    t.equal((await told.over).outcome, 'DEPTH_ZERO_SELF_SIGNED_CERT')
    const document = (await openOwnRequests(t)).fetch(new URL(`https://idp.test:${port}/`))
    await t.rejects(document, { message: 'idp.test: tls' })
  },
)

behaviour(t, 'a session that the upstream cannot go on with is offered once', async t => {
  const { port } = await startSecure(t, answering(once200))
  // Lets the first kind of hello pass: one that offers a session is longer.
  let usual = 0
  let refused = 0
  const front = await startRawServer(t, socket => {
    socket.once('data', hello => {
      usual ||= hello.length
      if (hello.length > usual + 16) {
        refused += 1
        socket.destroy()
        return
      }
      const back = connect(port, '127.0.0.1').on('error', () => {})
      back.write(hello)
      socket.pipe(back).pipe(socket)
    })
  })
  const connections = openConnections(t, { ca: cert })
  const outcomes = []
  for (let i = 0; i < 3; i++) outcomes.push((await ask(connections, front.port, secure).over).outcome)
  t.strictSame(outcomes, ['200 ok', 'ECONNRESET', '200 ok'])
  t.equal(refused, 1)
})

behaviour(
  t,
  'a handshake that is broken off, no TLS at all, or silence sends nothing and leaves nothing open',
  async t => {
    const ends: readonly (readonly [string, (socket: Socket) => void])[] = [
      ['ECONNRESET', socket => void socket.end()],
      ['ECONNRESET', socket => void socket.once('data', () => socket.end())],
      ['ECONNRESET', socket => void socket.once('data', () => socket.resetAndDestroy())],
      ['ERR_SSL_WRONG_VERSION_NUMBER', socket => void socket.once('data', () => socket.write(whole))],
      ['connect_timeout', () => {}],
    ]
    for (const [outcome, end] of ends) {
      const closed = Promise.withResolvers<void>()
      const { port } = await startRawServer(t, socket => {
        socket.on('close', () => closed.resolve()).resume()
        end(socket)
      })
      const limit = outcome === 'connect_timeout' ? { connectTimeoutMs: 200 } : {}
      const connections = openConnections(t, { ca: cert, ...limit })
      const told = ask(connections, port, secure)
      t.equal((await told.over).outcome, outcome)
      t.equal(told.control, undefined, 'nothing was sent')
      t.strictSame([told.ends, connections.size], [1, 0])
      await closed.promise
    }
  },
)

behaviour(t, 'a first address that does not do leaves the next', async t => {
  const { port, resumed } = await startSecure(t, answering(whole))
  const connections = openConnections(t, { ca: cert })
  const told = ask(connections, port, { ...secure, addresses: ['127.0.0.77', '127.0.0.1'] })
  t.equal((await told.over).outcome, '200 ok')
  t.equal(resumed.length, 1)
})

behaviour(t, 'a connection over TLS is used again, and not after it was closed or has spoken unasked', async t => {
  const sockets: TLSSocket[] = []
  const { port } = await startSecure(t, socket => {
    sockets.push(socket)
    answering(whole)(socket)
  })
  const connections = openConnections(t, { ca: cert })
  for (let i = 0; i < 2; i++) t.equal((await ask(connections, port, secure).over).outcome, '200 ok')
  t.equal(sockets.length, 1)
  for (const end of [(socket: TLSSocket) => void socket.end(), (socket: TLSSocket) => void socket.write(whole)]) {
    end(sockets.at(-1) as TLSSocket)
    while (connections.size > 0) await new Promise(setImmediate)
    t.equal((await ask(connections, port, secure).over).outcome, '200 ok')
  }
  t.equal(sockets.length, 3)
})

behaviour(t, 'an answer cut over TLS is an error, with a goodbye and without', async t => {
  for (const end of [(socket: TLSSocket) => socket.end(), (socket: TLSSocket) => socket.destroy()]) {
    const { port } = await startSecure(t, socket => {
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc', () => end(socket)))
    })
    const told = ask(openConnections(t, { ca: cert }), port, secure)
    t.match((await told.over).outcome, /reset/i)
  }
})

const mebibytes = 64
const block = randomBytes(1_048_576)
const expected = createHash('sha256')
for (let i = 0; i < mebibytes; i++) expected.update(block)
const digest = expected.digest('hex')
const bytes = mebibytes * block.length

/** Hashes a body, and holds it still now and then. */
function hashing() {
  const hash = createHash('sha256')
  let length = 0
  let pauses = 0
  const told = new Told({
    data(told) {
      const chunk = told.chunks.pop() as Buffer
      hash.update(chunk)
      length += chunk.length
      if (length < (pauses + 1) * 4_000_000) return
      pauses += 1
      told.control?.pause()
      setTimeout(() => told.control?.resume(), 1)
    },
  })
  return { told, digest: () => hash.digest('hex'), pauses: () => pauses }
}

/** Answers with as many bytes as `block` has, `mebibytes` times, and tells the digest of what it was sent. */
function streaming(digests: string[]) {
  return (socket: Socket) => {
    const hash = createHash('sha256')
    let left = -1
    socket.on('data', async (data: Buffer) => {
      let body = data
      if (left < 0) {
        body = data.subarray(data.indexOf('\r\n\r\n') + 4)
        left = bytes
      }
      hash.update(body)
      left -= body.length
      if (left > 0) return
      digests.push(hash.digest('hex'))
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`)
      for (let i = 0; i < mebibytes; i++) if (!socket.write(block)) await once(socket, 'drain')
    })
  }
}

for (const [how, scheme, http2Hosts] of [
  ['TCP', 'http', []],
  ['TLS', 'https', []],
  ['TLS that was offered HTTP/2 and chose HTTP/1.1', 'https', ['idp.test']],
] as const) {
  behaviour(t, `${mebibytes} MiB each way on two connections at once arrive unchanged over ${how}`, async t => {
    const digests: string[] = []
    const start = scheme === 'http' ? startRawServer : startSecure
    const { port } = await start(t, streaming(digests))
    const connections = openConnections(t, { ca: cert, http2Hosts: parseHostPatterns(http2Hosts) })
    const two = [hashing(), hashing()]
    const ended = two.map(({ told }) => {
      // Copies, since pieces are freed when they are written.
      const body = Readable.from(Array.from({ length: mebibytes }, () => Buffer.from(block)))
      ask(connections, port, { ...secure, scheme, method: 'POST', body, bodyLength: bytes, told })
      return told.over
    })
    await Promise.all(ended)
    for (const { told, digest: received, pauses } of two) {
      t.equal(told.error, undefined)
      t.equal(received(), digest)
      t.ok(pauses() > 10)
    }
    t.strictSame(digests, [digest, digest])
    t.equal(connections.size, 2, 'both may be used again')
  })
}
