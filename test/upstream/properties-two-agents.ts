/**
 * Threat T21 of SECURITY.md: whatever an upstream does, no byte of what one agent sends or gets, no connection that it has
 * authenticated and no cookie of it reaches another. Two agents share the connections to an upstream that follows a random
 * script. Each request and each answer names its agent, and an answer whose rights its connection has.
 */
import type { OnReadOpts, Socket } from 'node:net'
import { Duplex, PassThrough } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { createOrigin } from '../../src/base/origin.ts'
import type { OpenSocket } from '../../src/upstream/connection.ts'
import { Connections } from '../../src/upstream/connections.ts'
import { Http1Connection } from '../../src/upstream/http1.ts'
import type { OpenHttp1 } from '../../src/upstream/settings.ts'
import { createClock } from '../fixtures/clock.ts'
import { Peer, type Script, steps, World } from '../fixtures/odd-upstream.ts'
import { runs } from '../fixtures/runs.ts'
import { requestOf, Told } from '../fixtures/upstream.ts'

const turn = () => new Promise(setImmediate)

/** One connection of the upstream, whose bytes come in reads of their own. */
function connect(world: World, onread: OnReadOpts): Duplex {
  const socket = new Duplex({
    read() {},
    write: (chunk: Buffer, _encoding, done) => {
      done()
      peer.take(chunk.toString('latin1'))
    },
  })
  const peer = new Peer(world, {
    write(bytes) {
      if (socket.destroyed || bytes === '') return
      const read = Buffer.from(bytes, 'latin1')
      ;(onread.buffer as Uint8Array).set(read)
      onread.callback(read.length, onread.buffer as Uint8Array)
    },
    reset: () => void socket.destroy(new Error('reset')),
    end: () => void socket.push(null),
  })
  return socket
}

interface Asked {
  readonly agent: 'A' | 'B'
  readonly method: 'GET' | 'HEAD' | 'POST'
  readonly authenticates: boolean
  /** It is asked before what the upstream says in this turn is read. */
  readonly first: boolean
  /** Turns until the next request. */
  readonly pause: number
}

function send(connections: Connections, resolution: object, { agent, method, authenticates }: Asked): Told {
  const told = new Told()
  const fields = ['X-Agent', `of-${agent}`, ...(authenticates ? ['Authorization', `Negotiate of-${agent}`] : [])]
  const body = new PassThrough()
  const request = { method, path: `/${agent}`, fields, ...(method === 'POST' ? { body, bodyLength: 10 } : {}) }
  connections.send(createOrigin('http', 'up.example', 80), resolution as never, requestOf(request), told)
  if (method === 'POST') {
    body.write(`of-${agent} `)
    setImmediate(() => body.end(`of-${agent} `))
  }
  return told
}

function problemOf(told: Told, { agent }: Asked): string | undefined {
  const other = agent === 'A' ? 'B' : 'A'
  const got = `${told.head?.fields.join(' ')} ${told.text}`
  if (got.includes(`of-${other}`)) return `${agent} got what is for ${other}: ${got}`
  return got.includes(`rights of ${other}`) ? `${agent} has the rights of ${other}` : undefined
}

async function play(asked: readonly Asked[], script: readonly Script[]): Promise<void> {
  const world = new World()
  world.script = [...script]
  const sockets: Duplex[] = []
  const timeouts = {
    headersTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    eventStreamIdleMs: 60_000,
    connectTimeoutMs: 1_000,
  }
  const limits = { perOrigin: 2, total: 2, maxWaiting: 100, waitMs: 60_000, http2Hosts: [] }
  const openHttp1: OpenHttp1 = (authority, settings, _connect, events) => {
    const connectHere: OpenSocket = (onread, done) => {
      const socket = connect(world, onread as OnReadOpts)
      sockets.push(socket)
      process.nextTick(done, null, socket as Socket)
    }
    return new Http1Connection(authority, settings, connectHere, events)
  }
  const connections = new Connections({ ...timeouts, ...limits, openHttp1 }, createClock())
  const resolution = { addresses: ['127.0.0.1'], validUntil: Number.POSITIVE_INFINITY }
  const tolds: Told[] = []
  for (const one of asked) {
    if (one.first) tolds.push(send(connections, resolution, one))
    world.deliver()
    if (!one.first) tolds.push(send(connections, resolution, one))
    for (let i = 0; i <= one.pause; i++) {
      await turn()
      if (i < one.pause) world.deliver()
    }
  }
  // Until everything has come, and then whatever still waits ends with its connection.
  for (let i = 0; i < 12 && (i < 4 || tolds.some(({ ends }) => ends === 0)); i++) {
    world.deliver()
    await turn()
  }
  connections.close()
  for (const socket of sockets) socket.destroy()
  await Promise.all(tolds.map(({ over }) => over))
  const problem =
    world.leaks[0] ?? tolds.map((told, i) => problemOf(told, asked[i] as Asked)).find(found => found !== undefined)
  if (problem !== undefined) throw new Error(problem)
}

const asked: fc.Arbitrary<Asked> = fc.record({
  agent: fc.constantFrom('A' as const, 'B' as const),
  method: fc.constantFrom('GET' as const, 'GET' as const, 'HEAD' as const, 'POST' as const),
  authenticates: fc.integer({ min: 0, max: 7 }).map(n => n === 0),
  first: fc.boolean(),
  pause: fc.integer({ min: 0, max: 3 }),
})
const script = fc.record({ step: fc.constantFrom(...steps), after: fc.integer({ min: 0, max: 2 }) })

t.test('two agents that share an upstream share nothing else, whatever it does', async t => {
  const list = { minLength: 2, maxLength: 8 }
  await fc.assert(fc.asyncProperty(fc.array(asked, list), fc.array(script, list), play), { numRuns: runs(10_000) })
  t.pass('holds')
})
