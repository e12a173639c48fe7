/** Bodies of an agent are left with its client while enough others of it wait for their decisions. */
import { PassThrough } from 'node:stream'
import t from 'tap'
import { isRefusal } from '../../src/base/refusals.ts'
import type { Admitted } from '../../src/pipeline/exchange.ts'
import type { OutboundParts } from '../../src/pipeline/parts.ts'
import { createReadAhead, readAhead } from '../../src/pipeline/read-ahead.ts'
import { holdBody } from '../../src/pipeline/steps/hold-body.ts'

function ahead() {
  const bodies = createReadAhead(100)
  const resumed: string[] = []
  const waits = (agentId: string, name: string) => {
    const resume = () => void resumed.push(name)
    return { isEnough: bodies.isEnough(agentId, resume), resume }
  }
  return { bodies, resumed, waits }
}

t.test('bodies wait for the decisions on others of their agent alone, and go on one for each', async t => {
  const { bodies, resumed, waits } = ahead()
  t.notOk(waits('a', 'first').isEnough)
  bodies.add('a', 60)
  t.notOk(waits('a', 'second').isEnough)
  bodies.add('a', 60)
  for (const name of ['third', 'fourth', 'fifth']) t.ok(waits('a', name).isEnough)
  t.notOk(waits('b', 'of another agent').isEnough)
  bodies.remove('a', 10)
  t.strictSame(resumed, [], 'still enough')
  bodies.remove('a', 50)
  t.strictSame(resumed, ['third'])
  bodies.remove('a', 60)
  t.strictSame(resumed, ['third', 'fourth', 'fifth'], 'nothing is undecided that could call the rest')
  bodies.remove('a', 60)
  t.notOk(waits('a', 'sixth').isEnough)
})

t.test('a body waits once, and not when it was given up', async t => {
  const { bodies, resumed, waits } = ahead()
  bodies.forget('a', () => {})
  bodies.add('a', 100)
  bodies.add('a', 0)
  const { resume } = waits('a', 'asks twice')
  t.ok(bodies.isEnough('a', resume))
  bodies.forget('a', waits('a', 'given up').resume)
  bodies.forget('a', () => {})
  bodies.remove('a', 100)
  t.strictSame(resumed, ['asks twice'])
})

const length = 5 * 2 ** 20
const piece = 65_536

/** A body of that length whose first bytes are there. */
function arriving(agentId: string, contentLength = length) {
  const req = new PassThrough()
  let taken = 0
  // Only these parts of an exchange and of the gateway are used.
  const exchange = { req, fields: { contentLength }, agent: { id: agentId }, isOver: false, held: 0, bodyMs: 0 }
  const parts = {
    clock: { steady: () => 0 },
    bodyMemory: { take: (bytes: number) => Buffer.alloc(bytes), give: () => {} },
    heldBytes: {
      take: (_: string, bytes: number) => {
        taken += bytes
        return undefined
      },
    },
  }
  const held = holdBody(exchange as unknown as Admitted, length, parts as unknown as OutboundParts)
  return { req, held, taken: () => taken }
}

const rounds = async (count: number) => {
  for (let round = 0; round < count; round++) await new Promise(setImmediate)
}

t.test('nothing is read of a body while enough wait, and it is read when they are decided', async t => {
  readAhead.add('busy', length)
  const { req, held, taken } = arriving('busy')
  const other = arriving('other')
  for (const one of [req, other.req]) one.write(Buffer.alloc(piece))
  await rounds(10)
  t.strictSame([taken(), other.taken()], [0, piece])
  const short = arriving('busy', 2 * piece)
  short.req.end(Buffer.alloc(2 * piece))
  t.notOk(isRefusal(await short.held), 'a short one is read at once')
  t.equal(taken(), 0)
  readAhead.remove('busy', length)
  for (let sent = piece; sent < length; sent += piece) req.write(Buffer.alloc(piece))
  req.end()
  const body = await held
  t.equal(!isRefusal(body) && body.complete && body.bytes.length, length)
})

t.test('a body stops where enough have come meanwhile, but not when it is nearly whole', async t => {
  const { req, held, taken } = arriving('both')
  for (let sent = 0; sent < length - piece; sent += piece) req.write(Buffer.alloc(piece))
  await rounds(1)
  t.ok(taken() > 0)
  readAhead.add('both', length)
  await rounds(20)
  t.ok(taken() < length - piece, `${taken()} bytes`)
  readAhead.remove('both', length)
  await rounds(20)
  readAhead.add('both', length)
  req.end(Buffer.alloc(piece))
  t.notOk(isRefusal(await held))
  readAhead.remove('both', length)
})

t.test('a client that leaves while its body waits is forgotten', async t => {
  readAhead.add('left', length)
  const { req, held, taken } = arriving('left')
  req.write(Buffer.alloc(piece))
  await rounds(2)
  req.destroy()
  t.ok(isRefusal(await held))
  readAhead.remove('left', length)
  t.equal(taken(), 0)
})
