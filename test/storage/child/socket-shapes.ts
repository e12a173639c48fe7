/** Prints whether V8 has one hidden class for sockets to the database and to upstreams: node --allow-natives-syntax. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { parseTarget } from '../../../src/base/target.ts'
import { createSocket } from '../../../src/storage/postgres/connection.ts'
import { createDial } from '../../../src/upstream/dial.ts'

const server = createServer().listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const target = parseTarget(`http://127.0.0.1:${port}/`)
if (typeof target === 'string') throw new TypeError(target)
const dial = createDial({ connectTimeoutMs: 5_000, ca: undefined })
const upstream = await new Promise<Socket | undefined>(resolve =>
  dial(['127.0.0.1'], { origin: target.origin, http2: false }, (_, socket) => resolve(socket)),
)
const database = createSocket().connect(port, '127.0.0.1')
await once(database, 'connect')
// Other code cannot be read without the flag.
const areAlike = new Function('left', 'right', 'return %HaveSameMap(left, right)')
console.log(areAlike(upstream, database))
process.exit()
