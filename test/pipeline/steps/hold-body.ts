import { PassThrough } from 'node:stream'
import t from 'tap'
import { isRefusal } from '../../../src/base/refusals.ts'
import type { Admitted } from '../../../src/pipeline/exchange.ts'
import type { OutboundParts } from '../../../src/pipeline/parts.ts'
import { freeUnsent, holdBody, releaseBody } from '../../../src/pipeline/steps/hold-body.ts'

const length = 200_000
const limit = 1_000_000

/** A body of that length that arrives, and the memory that was given back. */
function arriving(refuses: () => 'held_bytes' | undefined = () => undefined) {
  const req = new PassThrough()
  const given: number[] = []
  const exchange = {
    ...{ req, fields: { contentLength: length }, agent: { id: 'a' } },
    isOver: false,
    held: 0,
    bodyMs: 0,
  }
  const bodyMemory = {
    take: (bytes: number) => Buffer.alloc(bytes),
    give: (memory: Buffer) => given.push(memory.length),
  }
  const heldBytes = { take: refuses, give: () => {} }
  const parts = { clock: { steady: () => 0 }, bodyMemory, heldBytes, bounds: { reached: () => {} } }
  const held = holdBody(exchange as unknown as Admitted, limit, parts as unknown as OutboundParts)
  return { req, given, held }
}

t.test('the memory of a body that breaks off is given back', async t => {
  const { req, given, held } = arriving()
  req.write(Buffer.alloc(length / 2))
  await new Promise(setImmediate)
  req.destroy()
  t.ok(isRefusal(await held))
  t.strictSame(given, [length])
})

t.test('the memory of a body that may not be held is given back', async t => {
  let pieces = 0
  const { req, given, held } = arriving(() => (++pieces > 1 ? 'held_bytes' : undefined))
  req.write(Buffer.alloc(length / 2))
  req.write(Buffer.alloc(length / 4))
  t.ok(isRefusal(await held))
  t.strictSame(given, [length])
})

t.test('the memory of a whole body stays with its exchange', async t => {
  const { req, given, held } = arriving()
  req.write(Buffer.alloc(length / 2))
  req.end(Buffer.alloc(length / 2))
  const body = await held
  t.equal(!isRefusal(body) && body.complete && body.bytes.length, length)
  t.strictSame(given, [])
})

t.test('the end of an exchange gives back what only a decision would have read, once', async t => {
  const given: number[] = []
  const parts = { bodyMemory: { give: (memory: Buffer) => given.push(memory.length) } } as unknown as OutboundParts
  const ended = (more: object) => {
    const exchange = { body: Buffer.alloc(length), held: 0, ...more } as unknown as Admitted
    releaseBody(exchange, parts)
    releaseBody(exchange, parts)
  }
  ended({ decision: {} })
  t.strictSame(given, [], 'others may read it once it is decided')
  let ends = 0
  ended({ loan: { end: () => ends++ } })
  t.strictSame([given, ends], [[], 2], 'its loan says when it is free')
  ended({})
  t.strictSame(given, [length])
})

t.test('a body that was allowed and never sent is given back once the step that waited is over', async t => {
  const given: number[] = []
  const parts = { bodyMemory: { give: (memory: Buffer) => given.push(memory.length) } } as unknown as OutboundParts
  const waited = (more: object) => {
    const exchange = { body: Buffer.alloc(length), effect: 'Allow', ...more } as unknown as Admitted
    freeUnsent(exchange, parts)
    freeUnsent(exchange, parts)
  }
  waited({ effect: 'Hitl' })
  t.strictSame(given, [], 'the queue may keep it')
  waited({ loan: {} })
  t.strictSame(given, [], 'its loan says when it is free')
  waited({ body: undefined })
  waited({})
  t.strictSame(given, [length])
})
