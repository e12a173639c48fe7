/** Bodies are read in turns, whether they are held or stream on. */
import { Readable } from 'node:stream'
import t from 'tap'
import { freeBytes } from '../../src/http/free-bytes.ts'
import { createBodyMemory } from '../../src/pipeline/body-memory.ts'
import { holdBody } from '../../src/pipeline/steps/hold-body.ts'
import { Upload } from '../../src/upstream/upload.ts'
import { createClock } from '../fixtures/clock.ts'

const size = 4 * 2 ** 20
const chunk = 65_536

/** A body that was received as a whole, and counts what was taken of it before the event loop went on. */
function bodyOf() {
  const body = new Readable({ read() {}, highWaterMark: size })
  let taken = 0
  let inFirstRound: number | undefined
  body.on('data', (bytes: Buffer) => {
    if (taken === 0) setImmediate(() => (inFirstRound = taken))
    taken += bytes.length
  })
  body.pause()
  for (let at = 0; at < size; at += chunk) body.push(Buffer.alloc(chunk, at / chunk))
  body.push(null)
  return { body, taken: () => taken, inFirstRound: () => inFirstRound }
}

t.test('a body that is held is read in several rounds of the event loop', async t => {
  const { body, inFirstRound } = bodyOf()
  // Only these parts of an exchange and of the gateway are used.
  const exchange = { req: body, res: {}, fields: { contentLength: size }, agent: { id: 'a' }, held: 0 } as never
  const parts = { clock: createClock(), bodyMemory: createBodyMemory(0), heldBytes: { take: () => undefined } } as never
  const held = holdBody(exchange, size, parts)
  body.resume()
  const outcome = await held
  t.equal('bytes' in outcome && outcome.bytes.length, size)
  t.ok(inFirstRound()! <= size / 2 + chunk, `${inFirstRound()} bytes`)
})

t.test('a body that streams is read in several rounds, also where its pieces are freed at once', async t => {
  const { body, taken, inFirstRound } = bodyOf()
  await new Promise<void>(resolve => {
    new Upload(
      body,
      undefined,
      { write: freeBytes, end: () => {}, isFull: () => false },
      { onChunk: () => true, onEnd: resolve, onBroken: () => t.fail('broken') },
    )
  })
  t.equal(taken(), size)
  t.ok(inFirstRound()! <= size / 2 + chunk, `${inFirstRound()} bytes`)
})
