import { once } from 'node:events'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { MessageChannel } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { createAcceptor } from '../../src/http/accept.ts'
import { createListener } from '../../src/http/listeners.ts'
import { createTargetReader } from '../../src/http/request-line.ts'
import { PortStream } from '../../src/threads/port-stream.ts'
import { call } from '../fixtures/call.ts'
import { testdir } from '../fixtures/testdir.ts'

/** More than the system keeps for a connection. */
const large = Buffer.alloc(16_777_216)

function start(t: Test, maxConnections: number) {
  let open = 0
  const answered = Promise.withResolvers<void>()
  const acceptor = createAcceptor({
    bodyTimeoutMs: 1_000,
    viaName: undefined,
    routeOf: createTargetReader(undefined).read,
    takesWebSockets: false,
    onProxy: async () => {},
    async onManagement({ res, path }) {
      res.end(path === '/large' ? large : path)
      answered.resolve()
    },
    report: () => {},
    counts: { refused: () => {} },
  })
  const listener = createListener(
    {
      maxConnections,
      count: {
        take: () => (open < maxConnections && ++open > 0 ? undefined : 'connections'),
        give: () => void open--,
      },
      onChange: () => {},
      onRefused: () => {},
      peerOf: () => undefined,
      headersTimeoutMs: 1_000,
      keepAliveMs: 1_000,
      idleMs: 60_000,
    },
    acceptor,
  )
  t.teardown(() => {
    listener.destroy()
    return listener.drain()
  })
  return { ...listener, answered: answered.promise }
}

const tcp = { host: '127.0.0.1', port: 0, setting: 'System:Server:Http' }

t.test('the limit of connections is one for all places together', async t => {
  const listener = start(t, 2)
  const path = join(testdir(t), 's')
  const { port } = await listener.listen(tcp)
  await listener.listen({ path, mode: 0o600, setting: 'System:Server:Unix:Path' })
  const first = connect(Number(port), '127.0.0.1')
  const second = connect(path)
  await Promise.all([once(first, 'connect'), once(second, 'connect')])
  await t.rejects(call({ socketPath: path }))
  first.destroy()
  await once(first, 'close')
  // Its place is free once the gateway has seen it go.
  while ((await call({ socketPath: path, path: '/free' }).catch(() => undefined))?.text !== '/free');
  second.destroy()
})

t.test(
  'what a slow client has yet to take of its answer arrives, although no more connections are accepted',
  async t => {
    const listener = start(t, 2)
    const { port } = await listener.listen(tcp)
    const client = connect(Number(port), '127.0.0.1').pause()
    client.write('GET /large HTTP/1.1\r\nHost: g\r\n\r\n')
    await listener.answered
    const drained = listener.drain()
    let taken = 0
    for await (const chunk of client) taken += chunk.length
    t.ok(taken > large.length, `${taken} bytes`)
    await drained
  },
)

t.test('several sockets may have one port, for threads', async t => {
  const listener = start(t, 10)
  const { port } = await listener.listen({ ...tcp, reusePort: true })
  t.strictSame(await listener.listen({ ...tcp, port: Number(port), reusePort: true }), {
    url: `http://127.0.0.1:${port}`,
    port,
  })
  await t.rejects(listener.listen({ ...tcp, port: Number(port) }), {
    name: 'StartupError',
    message: /is in use\. Stop what listens there, or set System:Server:Http:Port\.$/,
  })
})

t.test('an impossible address is reported in one line', async t => {
  const listener = start(t, 10)
  await t.rejects(listener.listen({ ...tcp, host: '192.0.2.1' }), {
    name: 'StartupError',
    message: '192.0.2.1 is not an address of this machine. Set System:Server:Http:Host.',
  })
  const loopback = Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address))
  const listening = listener.listen({ ...tcp, host: '::1' })
  if (loopback.includes('::1')) t.match((await listening).url, /^http:\/\/\[::1\]:\d+$/)
  else await t.rejects(listening, { message: '::1 is not an address of this machine. Set System:Server:Http:Host.' })
})

t.test('a call that another thread passes on as the listener drains is answered', async t => {
  const listener = start(t, 2)
  const { port1, port2 } = new MessageChannel()
  const there = new PortStream(port1)
  listener.adopt(new PortStream(port2))
  const drained = listener.drain()
  there.write('GET /passed HTTP/1.1\r\nHost: g\r\n\r\n')
  t.match(await text(there), /^HTTP\/1\.1 200 .*passed$/s)
  await drained
})
