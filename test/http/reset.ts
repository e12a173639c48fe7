/** Threat T33 of SECURITY.md: what a stalled client has not read does not stay in the memory of the system. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { promisify } from 'node:util'
import t from 'tap'
import { resetConnection } from '../../src/http/reset.ts'
import { testdir } from '../fixtures/testdir.ts'

const pem = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url))
const unread = Buffer.alloc(8_000_000)

/** Closes a connection whose client reads nothing of 8 MB; what the client is told when it reads on. */
async function ending(taken: Promise<Socket>, client: Socket): Promise<string> {
  client.pause()
  const socket = await taken
  socket.on('error', () => {})
  socket.write(unread)
  resetConnection(socket)
  if (!socket.closed) await once(socket, 'close')
  const end = Promise.race([once(client, 'error').then(([error]) => error.code), once(client, 'end').then(() => 'end')])
  client.resume()
  return end
}

t.test('a client over TCP is reset', async t => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const taken = once(server, 'connection').then(([socket]) => socket)
  t.equal(await ending(taken, connect((server.address() as AddressInfo).port, '127.0.0.1')), 'ECONNRESET')
})

t.test('a client over TLS is reset', async t => {
  const server = createTlsServer({ cert: pem('cert'), key: pem('key') }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const taken = once(server, 'secureConnection').then(([socket]) => socket)
  const { port } = server.address() as AddressInfo
  const client = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  await once(client, 'secureConnect')
  t.equal(await ending(taken, client), 'ECONNRESET')
})

t.test('a client over a unix socket is closed', async t => {
  const path = join(testdir(t), 'socket')
  const server = createServer().listen(path)
  t.teardown(() => server.close())
  await once(server, 'listening')
  const taken = once(server, 'connection').then(([socket]) => socket)
  const client = connect(path)
  await once(client, 'connect')
  t.match(await ending(taken, client), /^(end|ECONNRESET)$/)
})

/**
 * Handshakes in which the server cuts each connection off by `cut`. Freed memory is overwritten, so that no luck hides a use
 * of it.
 */
const handshakes = (cut: string): string => `
import { readFileSync } from 'node:fs'
import { connect as connectTcp, createServer } from 'node:net'
import { connect, createSecureContext, TLSSocket } from 'node:tls'
import { resetConnection } from '${new URL('../../src/http/reset.ts', import.meta.url)}'
const pem = name => readFileSync(new URL(name + '.pem', '${new URL('../fixtures/tls/', import.meta.url)}'))
const secureContext = createSecureContext({ cert: pem('cert'), key: pem('key') })
let left = 20
const server = createServer(socket => {
  const connection = new TLSSocket(socket, { isServer: true, secureContext })
  connection.on('error', () => {}).once('secure', () => { ${cut} })
}).listen(0, '127.0.0.1', call)
function call() {
  if (left-- === 0) return console.log('served') || process.exit()
  const socket = connectTcp(server.address().port, '127.0.0.1').on('error', () => {}).once('close', call)
  const maxVersion = left % 2 === 0 ? 'TLSv1.2' : 'TLSv1.3'
  const client = connect({ socket, rejectUnauthorized: false, maxVersion }, () => client.write('hello'))
  client.on('error', () => {})
}
`

t.test('a connection that is cut off within its handshake does not end the process', async t => {
  const env = { ...process.env, MALLOC_PERTURB_: '165' }
  for (const cut of ['resetConnection(connection)', 'connection.destroy()']) {
    const args = ['--input-type=module', '--eval', handshakes(cut)]
    const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 60_000 })
    t.equal(stdout, 'served\n', cut)
  }
})
