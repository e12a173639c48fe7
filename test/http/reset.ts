/** Threat T33 of SECURITY.md: what a stalled client has not read does not stay in the memory of the system. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { fileURLToPath } from 'node:url'
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

t.test('a connection that is cut off within its handshake does not end the process', async t => {
  // Freed memory is overwritten, so that no luck hides a use of it.
  const env = { ...process.env, MALLOC_PERTURB_: '165' }
  const script = fileURLToPath(new URL('child/handshakes.ts', import.meta.url))
  for (const how of ['reset', 'destroy']) {
    const { stdout } = await promisify(execFile)(process.execPath, [script, how], { env, timeout: 60_000 })
    t.equal(stdout, 'served\n', how)
  }
})
