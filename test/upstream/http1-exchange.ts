/** One exchange with an upstream that is no socket: what its handler does, and when. */
import { PassThrough } from 'node:stream'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import type { UpstreamRequest } from '../../src/upstream/handler.ts'
import type { CarrierSettings } from '../../src/upstream/settings.ts'
import { type Moment, openScripted, requestOf, Told } from '../fixtures/upstream.ts'

function begin(told = new Told(), request: Partial<UpstreamRequest> = {}, settings: Partial<CarrierSettings> = {}) {
  const upstream = openScripted(settings)
  upstream.connection.dispatch(requestOf(request), told, told)
  return { ...upstream, told }
}

const answer =
  'HTTP/1.1 103 x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\nabc\r\n0\r\n\r\n'
const later = () => new Promise(resolve => setImmediate(resolve))
const moments: readonly Moment[] = ['start', 'sent', 'interim', 'head', 'data']

for (const moment of moments) {
  const streamed = () => {
    const body = new PassThrough()
    body.end('body')
    return body
  }
  for (const [kind, bodyOf] of [
    ['whole', () => Buffer.from('body')],
    ['streaming', streamed],
  ] as const) {
    const request = () => ({ method: 'POST', body: bodyOf() })

    t.test(`a handler that throws at "${moment}", with a ${kind} body, ends its own exchange alone`, async t => {
      const thrown = Object.assign(new Error('a fault'), { code: 'FAULT' })
      const told = new Told({
        [moment]() {
          throw thrown
        },
      })
      const { connection, say } = begin(told, request())
      await later()
      say(answer)
      t.equal((await told.over).error, thrown)
      t.equal(told.ends, 1)
      t.strictSame(told.released, [false])
      t.ok(connection.destroyed)
    })

    t.test(
      `a handler that gives up at "${moment}", with a ${kind} body, is notified once and of nothing more`,
      async t => {
        const told = new Told({ [moment]: (told: Told) => told.control?.abort(new Error('enough')) })
        const { connection, say, sent } = begin(told, request())
        await later()
        const before = sent()
        // What comes now would be malformed.
        say(answer.replace('\r\n3\r\nabc\r\n0', '\r\nthis is no chunk'))
        t.equal((await told.over).outcome, 'enough')
        t.equal(told.ends, 1)
        t.ok(told.chunks.length <= 1)
        t.ok(connection.destroyed)
        t.equal(sent(), before)
        if (moment === 'start') t.equal(before, '', 'not a byte was sent')
        if (moment === 'sent') t.notMatch(before, /body|\r\n0\r\n/, 'the body was not completed')
      },
    )
  }
}

t.test('a head ends where it ends, wherever that is in a long read', async t => {
  const body = 'body'.repeat(1_000)
  for (let length = 2_000; length <= 2_060; length++) {
    const { connection, told, say } = begin()
    const fields = `X: ${'x'.repeat(length)}\r\nContent-Length: ${body.length}`
    say(`HTTP/1.1 103 x\r\nY: ${'y'.repeat(4_060 - length)}\r\n\r\nHTTP/1.1 200 OK\r\n${fields}\r\n\r\n${body}`)
    t.equal((await told.over).outcome, `200 ${body}`, `${length} bytes`)
    t.strictSame(told.interim, [103])
    t.equal(told.head?.fields[1]?.length, length)
    connection.destroy()
  }
})

t.test('what a handler does after the end has no effect', async t => {
  const { connection, told, say } = begin()
  say(answer)
  told.control?.pause()
  told.control?.abort(new Error('too late'))
  told.control?.resume()
  t.equal((await told.over).outcome, '200 abcabc')
  t.strictSame(told.released, [true])
  t.equal(told.ends, 1)
  t.notOk(connection.destroyed)
  const next = new Told()
  connection.dispatch(requestOf(), next, next)
  told.control?.abort(new Error('far too late'))
  say(answer)
  t.equal((await next.over).outcome, '200 abcabc')
  connection.destroy()
})

t.test('a connection that is given up ends its exchange, and is given up once', async t => {
  const { connection, told, disconnects } = begin()
  connection.destroy()
  connection.destroy()
  t.equal((await told.over).outcome, 'reset')
  t.equal(disconnects(), 1)
  t.equal(told.ends, 1)
})

t.test('a request for a connection that is gone is not sent, and fails', async t => {
  const { connection, told, say, sent } = begin()
  say(answer)
  await told.over
  connection.destroy()
  const before = sent()
  const late = new Told()
  connection.dispatch(requestOf(), late, late)
  t.equal((await late.over).outcome, 'reset')
  t.equal(late.control, undefined)
  t.equal(sent(), before)
})

t.test('what comes while nothing was asked ends the connection', async t => {
  const { connection, told, say } = begin()
  say(answer)
  await told.over
  t.notOk(connection.destroyed)
  say('H')
  t.ok(connection.destroyed)
})

t.test('a body that is whole is sent with its length, byte for byte, be it short or long', async t => {
  for (const length of [0, 1, 2_048, 2_049, 300_000]) {
    const body = Buffer.from(Array.from({ length }, (_, i) => i % 256))
    const { connection, sent } = begin(new Told(), { method: 'PUT', body })
    await later()
    const [head = '', ...rest] = sent().split('\r\n\r\n')
    t.match(head, new RegExp(`^PUT / HTTP/1.1\r\nHost: up.example\r\nContent-Length: ${length}$`))
    t.ok(rest.join('\r\n\r\n') === body.toString('latin1'), `${length} bytes`)
    connection.destroy()
  }
})

t.test('a request in chunks carries each piece of its body, and no empty one, and its end once', async t => {
  const body = new PassThrough({ objectMode: true })
  const { connection, told, sent, say } = begin(new Told(), { method: 'POST', body })
  for (const piece of ['abc', '', 'x'.repeat(20)]) body.write(Buffer.from(piece))
  await later()
  t.match(sent(), /\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n14\r\nx{20}\r\n$/)
  body.end()
  await later()
  t.match(sent(), /x\r\n0\r\n\r\n$/)
  say(answer)
  t.equal((await told.over).outcome, '200 abcabc')
  t.strictSame(told.released, [true])
  t.notOk(connection.destroyed)
  connection.destroy()
})

t.test('a body that breaks off, or is gone before it is sent, is never ended', async t => {
  const broken = new PassThrough()
  const gone = new PassThrough()
  gone.destroy()
  await later()
  for (const body of [broken, gone]) {
    const { connection, told, sent } = begin(new Told(), { method: 'POST', body })
    broken.write('abc')
    await later()
    broken.destroy(new Error('the client left'))
    t.equal((await told.over).outcome, 'reset')
    t.ok(connection.destroyed)
    t.notMatch(sent(), /\r\n0\r\n/)
  }
})

t.test('an answer before the end of the request stops the upload, and ends the connection', async t => {
  const body = new PassThrough()
  const { connection, told, sent, say } = begin(new Told(), { method: 'POST', body, bodyLength: 1_000 })
  body.write('abc')
  await later()
  say('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno')
  t.equal((await told.over).outcome, '413 no')
  t.ok(connection.destroyed)
  body.write('def')
  await later()
  t.match(sent(), /abc$/)
  t.ok(body.isPaused())
  t.notOk(body.destroyed, 'the client has an answer to come')
})

t.test('a body is whole when its announced length was sent: its end may come after the answer', async t => {
  const body = new PassThrough()
  const { connection, told, sent, say } = begin(new Told(), { method: 'POST', body, bodyLength: 6 })
  body.write('abc')
  body.write('def')
  await later()
  t.match(sent(), /abcdef$/)
  say(answer)
  t.equal((await told.over).outcome, '200 abcabc')
  t.strictSame(told.released, [true])
  t.notOk(connection.destroyed)
  t.notOk(body.isPaused(), 'the end still comes')
  connection.destroy()
})

t.test('an answer before the system has all of the request ends the connection', async t => {
  const { connection, socket, told, say } = begin()
  say(answer)
  await told.over
  socket._write = () => {}
  const next = new Told()
  connection.dispatch(requestOf({ method: 'POST', body: new PassThrough().end('abc'), bodyLength: 3 }), next, next)
  await later()
  say(answer)
  t.equal((await next.over).outcome, '200 abcabc')
  t.ok(connection.destroyed)
})

t.test('an upstream that takes nothing is given nothing, until it takes more', async t => {
  const { connection, socket, told, say } = begin()
  say(answer)
  await told.over
  // From here on writes are held.
  const held: (() => void)[] = []
  socket._write = (_chunk, _encoding, done) => void held.push(done)
  const body = new PassThrough()
  const next = new Told()
  connection.dispatch(requestOf({ method: 'POST', body, bodyLength: 200_000 }), next, next)
  body.write(Buffer.alloc(100_000))
  await later()
  await later()
  t.ok(body.isPaused())
  while (held.length > 0) {
    held.shift()?.()
    await later()
  }
  t.notOk(body.isPaused())
  connection.destroy()
})

const short = { headersTimeoutMs: 60, idleTimeoutMs: 60 }

/** Stops the time of timers in a test; gives what moves it on. */
function stopTime(t: Test): (ms: number) => Promise<void> {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  return async ms => {
    await later()
    mock.timers.tick(ms)
    await later()
  }
}

t.test('no head in time is a headers_timeout, interim answers or not', async t => {
  const pass = stopTime(t)
  const { told, say, connection } = begin(new Told(), {}, short)
  say('HTTP/1.1 103 x\r\n\r\nHTTP/1.1 200')
  await pass(100)
  t.equal((await told.over).outcome, 'headers_timeout')
  t.ok(connection.destroyed)
})

t.test('the time for a head starts again with each request', async t => {
  const pass = stopTime(t)
  const { told, say, connection } = begin(new Told(), {}, { ...short, headersTimeoutMs: 150 })
  await pass(100)
  say(answer)
  await told.over
  const next = new Told()
  connection.dispatch(requestOf(), next, next)
  await pass(100)
  say(answer)
  t.equal((await next.over).outcome, '200 abcabc')
  connection.destroy()
})

t.test('a body that stands still is a body_timeout, and one that nobody takes is not', async t => {
  const pass = stopTime(t)
  const begun = 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc'
  const still = begin(new Told(), {}, short)
  const paused = begin(new Told({ data: told => told.control?.pause() }), {}, short)
  for (const { say } of [still, paused]) say(begun)
  await pass(100)
  t.equal((await still.told.over).outcome, 'body_timeout')
  await pass(100)
  t.equal(paused.told.ends, 0)
  paused.told.control?.resume()
  await pass(100)
  t.equal((await paused.told.over).outcome, 'body_timeout', 'it counts again when it is taken again')
})

t.test('a client that is slow to send is not the fault of the upstream, one that is done waits for it', async t => {
  const pass = stopTime(t)
  const body = new PassThrough()
  const { told } = begin(new Told(), { method: 'POST', body }, short)
  body.write('abc')
  await pass(150)
  t.equal(told.ends, 0)
  body.end()
  await pass(100)
  t.equal((await told.over).outcome, 'headers_timeout')
})

t.test('an answer that has begun waits for the rest of the request as long as that moves', async t => {
  const pass = stopTime(t)
  const body = new PassThrough()
  const { told, say } = begin(new Told(), { method: 'POST', body }, short)
  say('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n')
  for (let i = 0; i < 6; i++) {
    body.write('x')
    await pass(30)
  }
  t.equal(told.ends, 0)
  await pass(100)
  t.equal((await told.over).outcome, 'body_timeout')
})

t.test('an upstream that stops reading the body is out of time, however much the client has', async t => {
  const pass = stopTime(t)
  const { told, socket, connection, say } = begin(new Told(), {}, short)
  say(answer)
  await told.over
  socket._write = () => {}
  const body = new PassThrough()
  const next = new Told()
  connection.dispatch(requestOf({ method: 'POST', body }), next, next)
  body.write(Buffer.alloc(100_000))
  await pass(100)
  t.equal((await next.over).outcome, 'headers_timeout')
})

t.test('an idle connection closes after the time that is set, or sooner when the upstream says so', async t => {
  const pass = stopTime(t)
  const answers = (hint: string) => `HTTP/1.1 200 OK\r\nContent-Length: 0\r\n${hint}\r\n`
  const cases: readonly (readonly [string, Partial<CarrierSettings>, boolean])[] = [
    ['', { keepAliveMs: 30 }, true],
    ['', { keepAliveMs: 60_000 }, false],
    ['Keep-Alive: timeout=0\r\n', {}, true],
    ['Keep-Alive: timeout=2\r\n', {}, true],
    ['Keep-Alive: timeout=60\r\n', { keepAliveMs: 30 }, false],
    ['Keep-Alive: timeout=999999999\r\n', { keepAliveMs: 30, maxKeepAliveMs: 60 }, true],
  ]
  const opened = cases.map(([hint, settings]) => {
    const { say, connection } = begin(new Told(), {}, settings)
    say(answers(hint))
    return connection
  })
  await pass(150)
  for (const [i, [hint, settings, closed]] of cases.entries()) {
    t.equal(opened[i]?.destroyed, closed, `${hint} ${JSON.stringify(settings)}`)
    opened[i]?.destroy()
  }
})

t.test('a connection that is used again does not close for the time that it was idle before', async t => {
  const pass = stopTime(t)
  const { say, connection, told } = begin(new Told(), {}, { keepAliveMs: 100 })
  say(answer)
  await told.over
  await pass(60)
  const next = new Told()
  connection.dispatch(requestOf(), next, next)
  await pass(60)
  t.notOk(connection.destroyed, 'it is under way')
  say(answer)
  await next.over
  await pass(60)
  t.notOk(connection.destroyed, 'its time has started again')
  await pass(100)
  t.ok(connection.destroyed)
})
