import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { type Relayed, relay } from '../../src/hitl/relay.ts'

async function* chunks(...sizes: number[]) {
  for (const size of sizes) yield Buffer.alloc(size, 1)
}

/** A relay with what it recorded. */
function start(body: AsyncIterable<Uint8Array>, cap: number, isLate = () => false, length = Number.NaN) {
  const out = new PassThrough({ highWaterMark: 10 })
  const recorded: Relayed[] = []
  const record = async (relayed: Relayed) => void recorded.push(relayed)
  return { out, recorded, done: relay(body, out, { cap, isLate, record, length }) }
}

t.test('a short body is recorded whole and passed on', async t => {
  const { out, recorded, done } = start(chunks(30, 30), 60)
  t.equal((await buffer(out)).length, 60)
  await done
  t.equal(recorded[0]?.kept?.length, 60)
  t.equal(recorded.length, 1)
})

t.test('the end of a body of known length is passed on after it is recorded', async t => {
  const out = new PassThrough()
  const recorded = Promise.withResolvers<void>()
  const record = () => recorded.promise
  const done = relay(chunks(30, 30), out, { cap: 60, isLate: () => false, record, length: 60 })
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  t.equal(out.readableLength, 30)
  recorded.resolve()
  t.equal((await buffer(out)).length, 60)
  await done
})

t.test('an empty body is an answer too', async t => {
  const { out, recorded, done } = start(chunks(), 60)
  t.equal((await buffer(out)).length, 0)
  await done
  t.equal(recorded[0]?.kept?.length, 0)
})

t.test('a body over the cap is passed on whole and not kept', async t => {
  const { out, recorded, done } = start(chunks(30, 31, 500), 60)
  t.equal((await buffer(out)).length, 561)
  await done
  t.strictSame(recorded, [{ kept: undefined }])
})

t.test('a reviewer that never reads delays no record of a short body', async t => {
  const { recorded, done } = start(chunks(30, 30), 60)
  await done
  t.equal(recorded[0]?.kept?.length, 60)
})

t.test('past the cap the upstream is read at the pace of the reviewer', async t => {
  let taken = 0
  async function* endless() {
    for (;;) {
      taken++
      yield Buffer.alloc(100)
    }
  }
  const { out, recorded, done } = start(endless(), 60)
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  t.strictSame(recorded, [{ kept: undefined }])
  t.equal(taken, 1)
  out.destroy()
  await done
})

t.test('a reviewer that went away ends nothing before the record', async t => {
  const { out, recorded, done } = start(chunks(30, 30), 60)
  out.destroy()
  await done
  t.equal(recorded[0]?.kept?.length, 60)
})

t.test('a long body that nobody reads any more is given up once it is recorded', async t => {
  let ended = false
  async function* endless() {
    try {
      for (;;) yield Buffer.alloc(100)
    } finally {
      ended = true
    }
  }
  const { out, recorded, done } = start(endless(), 1_000)
  out.destroy()
  await done
  t.strictSame(recorded, [{ kept: undefined }])
  t.ok(ended)
})

t.test('a body that goes on too long is recorded before it ends', async t => {
  const { out, recorded, done } = start(chunks(1, 1, 1), 60, () => true)
  t.equal((await buffer(out)).length, 3)
  await done
  t.strictSame(recorded, [{ kept: undefined }])
})

t.test('a body that breaks off breaks the answer to the reviewer too, and records nothing', async t => {
  async function* broken() {
    yield Buffer.alloc(1)
    throw new TypeError('reset')
  }
  const { out, recorded, done } = start(broken(), 60)
  await t.rejects(done, { message: 'reset' })
  await t.rejects(buffer(out), { message: 'reset' })
  t.strictSame(recorded, [])
})
