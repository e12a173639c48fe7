/** Threat T32 of SECURITY.md. */

import t from 'tap'
import type { Exchange } from '../../src/pipeline/exchange.ts'
import { createWatch } from '../../src/pipeline/watch.ts'
import { createClock } from '../fixtures/clock.ts'

const second = 1_000
const idle = 60 * second

/** An exchange as far as the watch looks at it. */
function createExchange() {
  const socket = {
    bytesRead: 0,
    bytesWritten: 0,
    writableLength: 0,
    _handle: { writeQueueSize: 0 },
    destroyed: false,
    destroy() {
      this.destroyed = true
    },
  }
  const req: { complete: boolean; destroyed: boolean; paused: boolean; isPaused(): boolean; readableFlowing: boolean } =
    {
      ...{ complete: true, destroyed: false, paused: false },
      isPaused: () => req.paused,
      get readableFlowing(): boolean {
        return !req.paused
      },
    }
  const res = { headersSent: false }
  const exchange = {
    ...{ req, res, socket, place: -1, stalledSince: undefined as number | undefined },
    progress: undefined,
  }
  return { exchange: exchange as unknown as Exchange, fields: exchange, socket, req, res }
}

function start(bytesPerSecond = 0) {
  const clock = createClock()
  const slow: Exchange[] = []
  const pace = { bytesPerSecond, windowMs: 30 * second }
  const onStalled = ({ socket }: Exchange) => void socket.destroy()
  const watch = createWatch(
    { clock, idleMs: idle, pace, onSlow: exchange => slow.push(exchange), onStalled },
    new Int32Array(1),
  )
  const made = createExchange()
  watch.add(made.exchange)
  /** Time passes, and the watch looks every second. */
  const pass = (seconds: number, each: () => void = () => {}) => {
    for (let i = 0; i < seconds; i++) {
      clock.advance(second)
      each()
      watch.sweep()
    }
  }
  return { ...made, pass, clock, slow }
}

t.test('a client that takes nothing of what is there is cut off', async t => {
  const { fields, socket, pass, clock } = start()
  pass(1_000)
  t.notOk(socket.destroyed, 'not while there is nothing for it')
  fields.stalledSince = clock.steady()
  socket.bytesWritten = 65_536
  socket._handle.writeQueueSize = 65_536
  pass(60)
  t.notOk(socket.destroyed)
  pass(1)
  t.ok(socket.destroyed)
})

t.test('one that takes a byte now and then is not, however long it takes', async t => {
  const { fields, socket, pass, clock } = start()
  fields.stalledSince = clock.steady()
  socket.bytesWritten = 65_536
  socket._handle.writeQueueSize = 65_536
  let passed = 0
  pass(3_600, () => {
    passed += 1
    if (passed % 50 === 0) socket._handle.writeQueueSize -= 1
  })
  t.notOk(socket.destroyed)
  pass(61)
  t.ok(socket.destroyed, 'until it stops')
})

t.test('a client whose body stands still is cut off, one that sends a byte now and then is not', async t => {
  const { req, socket, pass } = start()
  req.complete = false
  let passed = 0
  pass(3_600, () => {
    passed += 1
    if (passed % 50 === 0) socket.bytesRead += 1
  })
  t.notOk(socket.destroyed)
  pass(61)
  t.ok(socket.destroyed)
})

t.test('a client that waits because the upstream takes nothing is not to blame', async t => {
  const { req, socket, pass } = start()
  req.complete = false
  req.paused = true
  pass(3_600)
  t.notOk(socket.destroyed)
})

t.test('a client that speaks in turn with its upstream, which has begun its answer, may be slow or silent', async t => {
  const { req, res, socket, pass, slow } = start(100)
  req.complete = false
  res.headersSent = true
  pass(3_600)
  t.notOk(socket.destroyed)
  t.strictSame(slow, [])
})

t.test('a body that comes more slowly than the pace is ended after the window, one at the pace is not', async t => {
  const { req, socket, pass, slow, exchange } = start(100)
  req.complete = false
  // The first look begins the first window.
  pass(3_001, () => {
    socket.bytesRead += 100
  })
  t.strictSame(slow, [])
  pass(30, () => {
    socket.bytesRead += 1
  })
  t.strictSame(slow, [exchange])
})

t.test('bursts count over the window, and so does no time in which the gateway reads nothing', async t => {
  const { req, socket, pass, slow } = start(100)
  req.complete = false
  for (let i = 0; i < 20; i++) {
    socket.bytesRead += 3_100
    pass(30)
    req.paused = true
    pass(100)
    req.paused = false
  }
  t.strictSame(slow, [])
})
