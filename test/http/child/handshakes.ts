/** Handshakes of TLS in which the server cuts each connection off, as its argument says. */
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net'
import { connect, createSecureContext, TLSSocket } from 'node:tls'
import { resetConnection } from '../../../src/http/reset.ts'

const pem = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}.pem`, import.meta.url))
const secureContext = createSecureContext({ cert: pem('cert'), key: pem('key') })
const cut = process.argv[2] === 'reset' ? resetConnection : (connection: TLSSocket) => connection.destroy()
const server = createServer(socket => {
  const connection = new TLSSocket(socket, { isServer: true, secureContext })
  connection.on('error', () => {}).once('secure', () => cut(connection))
})
let left = 20

function call(): void {
  if (left-- === 0) {
    console.log('served')
    process.exit()
  }
  const { port } = server.address() as AddressInfo
  const socket = connectTcp(port, '127.0.0.1').on('error', () => {})
  socket.once('close', call)
  const maxVersion = left % 2 === 0 ? 'TLSv1.2' : 'TLSv1.3'
  const client = connect({ socket, rejectUnauthorized: false, maxVersion }, () => client.write('hello'))
  client.on('error', () => {})
}

server.listen(0, '127.0.0.1', call)
