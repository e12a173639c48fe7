/** Where an upstream closes idle connections early, new ones are kept less long. */

import t, { type Test } from 'tap'
import { Http1Connection } from '../../src/upstream/http1.ts'
import { KeepAlives } from '../../src/upstream/keep-alives.ts'
import { createClock } from '../fixtures/clock.ts'
import { openUndici } from '../fixtures/engine.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { ask, openConnections } from '../fixtures/upstream.ts'

t.test('three quarters of the shortest idle time are learnt, and forgotten after ten minutes', async t => {
  const learnt = new KeepAlives()
  t.equal(learnt.of('a', 0), Number.POSITIVE_INFINITY)
  learnt.note('a', 2_000, 0)
  t.equal(learnt.of('a', 0), 1_500)
  learnt.note('a', 1_000, 1)
  learnt.note('a', 3_000, 2)
  t.equal(learnt.of('a', 600_001), 750)
  t.equal(learnt.of('a', 600_002), Number.POSITIVE_INFINITY)
  t.equal(learnt.of('b', 0), Number.POSITIVE_INFINITY)
})

t.test('what closes at once, as in a restart, is no limit', async t => {
  const learnt = new KeepAlives()
  learnt.note('a', 99, 0)
  t.equal(learnt.of('a', 0), Number.POSITIVE_INFINITY)
})

t.test('1,000 upstreams are remembered', async t => {
  const learnt = new KeepAlives()
  for (let i = 0; i <= 1_000; i++) learnt.note(String(i), 1_000, 0)
  t.equal(learnt.of('0', 0), Number.POSITIVE_INFINITY)
  t.equal(learnt.of('1', 0), 750)
})

/** Connections whose times are noted: of each how long it is kept when idle, and at most. */
function openNoting(t: Test) {
  const clock = createClock()
  const kept: number[][] = []
  const connections = openConnections(
    t,
    {
      openHttp1: (...parts) => {
        const [, settings] = parts
        kept.push([settings.keepAliveMs, settings.maxKeepAliveMs])
        return openUndici?.(...parts) ?? new Http1Connection(...parts)
      },
    },
    clock,
  )
  return { clock, kept, connections }
}

const usual = [4_000, 60_000]

t.test('an idle connection that the upstream closes teaches the next one', async t => {
  const origin = await startOrigin(t)
  const { clock, kept, connections } = openNoting(t)
  await ask(connections, origin.port).over
  clock.advance(1_000)
  for (const socket of origin.sockets) socket.end()
  await eventually(
    () => connections.size,
    size => size === 0,
  )
  await ask(connections, origin.port).over
  t.strictSame(kept, [usual, [750, 750]])
  const other = await startOrigin(t)
  await ask(connections, other.port).over
  t.strictSame(kept[2], usual, 'another upstream has its own')
})

t.test('one that breaks under a request teaches nothing: the request may be the cause', async t => {
  const origin = await startOrigin(t, (req, res) => {
    if (req.url === '/breaks') req.socket.destroy()
    else res.end('ok')
  })
  const { clock, kept, connections } = openNoting(t)
  await ask(connections, origin.port).over
  clock.advance(1_000)
  t.match(await ask(connections, origin.port, { path: '/breaks' }).over, { outcome: 'reset' })
  await ask(connections, origin.port).over
  t.strictSame(kept, [usual, usual])
})
