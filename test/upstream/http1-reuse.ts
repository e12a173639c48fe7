/** Threat T21 of SECURITY.md: a connection serves the next request only when nothing can be mixed up. */

import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { behaviour } from '../fixtures/engine.ts'
import { startRawServer } from '../fixtures/raw.ts'
import { ask, openConnections, Told } from '../fixtures/upstream.ts'

const whole = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** An upstream that answers each request at once with what `answer` says, and counts. */
async function startUpstream(t: Test, answer: (path: string, socket: Socket) => string | Buffer) {
  const sockets: Socket[] = []
  const paths: string[] = []
  const { port } = await startRawServer(t, socket => {
    sockets.push(socket)
    socket.on('data', data => {
      for (const [, path = ''] of data.toString('latin1').matchAll(/^[A-Z]+ (\S+) /gm)) {
        paths.push(path)
        socket.write(answer(path, socket))
      }
    })
  })
  return { port, sockets, paths }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate)
}

interface Case {
  readonly what: string
  readonly answer: string
  readonly method?: string
  readonly fields?: readonly string[]
  readonly closes?: boolean
}

const reused: readonly Case[] = [
  { what: 'a length', answer: whole },
  { what: 'an empty body', answer: 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n' },
  { what: 'chunks and trailers', answer: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n' },
  { what: '204', answer: 'HTTP/1.1 204 No Content\r\n\r\n' },
  { what: '304', answer: 'HTTP/1.1 304 Not Modified\r\n\r\n' },
  { what: 'an interim answer before it', answer: `HTTP/1.1 100 Continue\r\n\r\n${whole}` },
  { what: 'HTTP/1.0 that stays', answer: 'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok' },
  { what: 'a long hint', answer: 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=9\r\nContent-Length: 2\r\n\r\nok' },
]

const notReused: readonly Case[] = [
  { what: 'Connection: close', answer: 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok' },
  { what: 'HTTP/1.0', answer: 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok' },
  { what: 'a body that ends with the connection', answer: 'HTTP/1.1 200 OK\r\n\r\nok', closes: true },
  { what: 'HEAD with a body', answer: whole, method: 'HEAD' },
  { what: 'HEAD without a length', answer: 'HTTP/1.1 200 OK\r\n\r\n', method: 'HEAD' },
  { what: 'HEAD and an empty body', answer: 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', method: 'HEAD' },
  { what: 'HEAD and a length', answer: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n', method: 'HEAD' },
  { what: 'HEAD and chunks', answer: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', method: 'HEAD' },
  { what: '204 and a length', answer: 'HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n' },
  { what: '204 and chunks', answer: 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n' },
  { what: '304 and a length', answer: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n' },
  { what: 'a challenge of NTLM', answer: 'HTTP/1.1 200 OK\r\nWWW-Authenticate: NTLM\r\nContent-Length: 2\r\n\r\nok' },
  { what: 'Negotiate', answer: whole, fields: ['Authorization', 'Negotiate YII'] },
  { what: '204 with a body', answer: 'HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok' },
  { what: 'a second answer', answer: whole + whole },
  { what: 'an empty line behind', answer: `${whole}\r\n` },
  { what: 'a short hint', answer: 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok' },
]

for (const [cases, connectionsUsed] of [
  [reused, 1],
  [notReused, 2],
] as const) {
  for (const { what, answer, method = 'GET', fields = [], closes } of cases) {
    behaviour(t, `a connection is used ${connectionsUsed === 1 ? 'again' : 'once'}: ${what}`, async t => {
      const { port, sockets, paths } = await startUpstream(t, (_, socket) => {
        if (closes) setImmediate(() => socket.end())
        return answer
      })
      const connections = openConnections(t)
      const outcomes = []
      for (const path of ['/1', '/2'])
        outcomes.push((await ask(connections, port, { method, path, fields }).over).outcome)
      t.equal(outcomes[0], outcomes[1])
      t.match(outcomes[0], /^[23]\d\d /)
      t.equal(sockets.length, connectionsUsed)
      t.strictSame(paths, ['/1', '/2'])
      t.ok(connections.size <= 1)
    })
  }
}

behaviour(t, 'a connection that closes or speaks while it is idle is given up, and nothing is sent on it', async t => {
  const ends: readonly ((socket: Socket) => void)[] = [
    socket => socket.end(),
    socket => socket.resetAndDestroy(),
    socket => socket.write(whole),
    socket => socket.write('\r\n'),
  ]
  for (const end of ends) {
    const { port, sockets, paths } = await startUpstream(t, () => whole)
    const connections = openConnections(t)
    await ask(connections, port, { path: '/1' }).over
    end(sockets[0] as Socket)
    await until(() => connections.size === 0)
    t.equal((await ask(connections, port, { path: '/2' }).over).outcome, '200 ok')
    t.equal(sockets.length, 2)
    t.strictSame(paths, ['/1', '/2'])
  }
})

behaviour(
  t,
  'a request whose connection dies before it is written goes to another, once, even without a queue',
  async t => {
    const { port, sockets, paths } = await startUpstream(t, () => whole)
    const connections = openConnections(t, { perOrigin: 1, total: 1, maxWaiting: 0 })
    await ask(connections, port, { path: '/first' }).over
    for (let i = 0; i < 20; i++) {
      // Timers come first in a turn of the event loop, then sockets are read, and only then requests leave.
      await delay(1)
      const told = ask(connections, port, { path: `/${i}` })
      const last = sockets.at(-1) as Socket
      if (i % 2 === 0) last.resetAndDestroy()
      else last.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison')
      t.equal((await told.over).outcome, '200 ok')
      t.equal(connections.size, 1)
    }
    t.equal(sockets.length, 21)
    t.strictSame(paths, ['/first', ...Array.from({ length: 20 }, (_, i) => `/${i}`)])
  },
)

behaviour(
  t,
  'one that waits gets the place of a connection that dies, and one that has no place is told so',
  async t => {
    const { port, paths } = await startUpstream(t, (path, socket) => {
      if (path !== '/dies') return whole
      setImmediate(() => socket.resetAndDestroy())
      return ''
    })
    const connections = openConnections(t, { perOrigin: 1, total: 1, maxWaiting: 1 })
    const dies = ask(connections, port, { path: '/dies' })
    const waits = ask(connections, port, { path: '/waits' })
    const tooMany = ask(connections, port, { path: '/too-many' })
    t.equal((await tooMany.over).error?.name, 'UpstreamBusyError')
    t.equal((await dies.over).outcome, 'ECONNRESET')
    t.equal((await waits.over).outcome, '200 ok')
    t.strictSame(paths, ['/dies', '/waits'])
  },
)

const chunks = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const stages: Readonly<Record<string, string>> = {
  'before a byte of the answer': '',
  'within the status line': 'HTTP/1.1 2',
  'within a field': 'HTTP/1.1 200 OK\r\nX',
  'behind an interim answer': 'HTTP/1.1 103 x\r\n\r\n',
  'behind the head': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n',
  'within the body': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no',
  'within the size of a chunk': `${chunks}1`,
  'within a chunk': `${chunks}2\r\no`,
  'behind a chunk': `${chunks}2\r\nok\r\n`,
  'within the last line': `${chunks}2\r\nok\r\n0\r\n`,
  'within a trailer': `${chunks}2\r\nok\r\n0\r\nX: y\r\n`,
}

for (const [stage, bytes] of Object.entries(stages)) {
  behaviour(t, `a connection that breaks ${stage} is an error, and the request is sent once`, async t => {
    for (const end of ['reset', 'close'] as const) {
      const { port, paths } = await startUpstream(t, (_, socket) => {
        setTimeout(() => (end === 'reset' ? socket.resetAndDestroy() : socket.end()), 5)
        return bytes
      })
      const connections = openConnections(t)
      const told = ask(connections, port)
      t.equal((await told.over).outcome, end === 'reset' ? 'ECONNRESET' : 'reset')
      t.strictSame([told.ends, paths.length], [1, 1])
      t.equal(connections.size, 0)
    }
  })
}

behaviour(t, 'a body that ends with a reset connection is not whole', async t => {
  const { port } = await startUpstream(t, (_, socket) => {
    setTimeout(() => socket.resetAndDestroy(), 5)
    return 'HTTP/1.1 200 OK\r\n\r\nok'
  })
  t.equal((await ask(openConnections(t), port).over).outcome, 'ECONNRESET')
})

behaviour(t, 'an upstream that closes while its answer is held still has said all of it', async t => {
  const { port } = await startUpstream(t, (_, socket) => {
    setImmediate(() => socket.end())
    return `HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(300_000)}`
  })
  const connections = openConnections(t)
  const told = ask(connections, port, {
    told: new Told({
      data(told) {
        told.control?.pause()
        setTimeout(() => told.control?.resume(), 2)
      },
    }),
  })
  await told.over
  t.equal(told.text.length, 300_000)
  t.equal(connections.size, 0)
})

behaviour(t, 'the first of several addresses may be dead, and the request is sent once', async t => {
  const { port, paths } = await startUpstream(t, () => whole)
  const connections = openConnections(t)
  const told = ask(connections, port, { addresses: ['127.0.0.77', '127.0.0.1'] })
  t.equal((await told.over).outcome, '200 ok')
  t.equal(paths.length, 1)
  const none = ask(connections, port, { host: 'other.example', addresses: ['127.0.0.77', '127.0.0.78'] })
  t.equal((await none.over).outcome, 'ECONNREFUSED')
  t.equal(none.control, undefined, 'nothing was begun')
  t.equal(connections.size, 1)
})

behaviour(t, 'a client that leaves while its request has no connection yet leaves no place taken', async t => {
  const { port, paths } = await startUpstream(t, () => whole)
  const connections = openConnections(t)
  const told = ask(connections, port, { told: new Told({ start: told => told.control?.abort(new Error('left')) }) })
  t.equal((await told.over).outcome, 'left')
  t.equal(connections.size, 0)
  t.equal(paths.length, 0)
})

behaviour(
  t,
  'whatever upstreams and handlers do at once, each request ends once and every place comes back',
  async t => {
    const answers = [whole, whole, whole, whole + whole, '', 'HTTP/1.1 2', 'nonsense\r\n\r\n', stages['within a chunk']]
    const { port, sockets, paths } = await startUpstream(t, (path, socket) => {
      const number = Number(path.slice(1))
      if (number % 5 === 0) setImmediate(() => socket.resetAndDestroy())
      if (number % 7 === 0) setTimeout(() => socket.end(), 1)
      return answers[number % answers.length] as string
    })
    const limits = { perOrigin: 6, total: 6, maxWaiting: 1_000, headersTimeoutMs: 50, idleTimeoutMs: 50 }
    const connections = openConnections(t, limits)
    const leave = (told: Told) => told.control?.abort(new Error('left'))
    const tolds = Array.from({ length: 400 }, (_, i) => {
      const on = i % 11 === 0 ? { start: leave } : i % 13 === 0 ? { data: leave } : {}
      return ask(connections, port, { path: `/${i}`, told: new Told(on) })
    })
    const held = setInterval(() => {}, 1_000)
    await Promise.all(tolds.map(told => told.over))
    clearInterval(held)
    t.ok(tolds.every(({ ends }) => ends === 1))
    t.equal(new Set(paths).size, paths.length, 'none was sent twice')
    t.ok(tolds.every(({ text }) => text === '' || text === 'o' || text === 'ok'))
    for (const socket of sockets) socket.destroy()
    await until(() => connections.size === 0)
  },
)

behaviour(t, 'closing ends what is idle now, what is under way at its end, and sends nothing that waits', async t => {
  const { port, sockets, paths } = await startUpstream(t, path => (path === '/idle' ? whole : ''))
  // Half of them are for one agent.
  const connections = openConnections(t, { perOrigin: 4 })
  const underWay = ask(connections, port, { path: '/under-way' })
  await ask(connections, port, { path: '/idle' }).over
  const busy = ask(connections, port, { path: '/busy' })
  const waits = ask(connections, port, { path: '/waits' })
  await until(() => paths.length === 3)
  connections.close()
  t.equal((await waits.over).error?.name, 'UpstreamBusyError')
  for (const socket of sockets) socket.write(whole)
  for (const told of [underWay, busy]) t.equal((await told.over).outcome, '200 ok')
  t.equal(connections.size, 0)
  t.equal(paths.length, 3)
})

behaviour(t, 'closing ends what is idle, and says so to the upstream', async t => {
  const { port, sockets } = await startUpstream(t, () => whole)
  const connections = openConnections(t)
  await ask(connections, port).over
  const closed = once(sockets[0] as Socket, 'end')
  connections.close()
  await closed
  t.equal(connections.size, 0)
})
