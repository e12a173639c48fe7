/** Threat T69 of SECURITY.md: memory of bodies is used again only when nothing reads it any more. */

import t from 'tap'
import { createBodyMemory } from '../../src/pipeline/body-memory.ts'

const size = 100_000
const most = 10 * size

/** A body in memory that may be used again. */
function lend(spare = most) {
  const memory = createBodyMemory(spare)
  const body = memory.take(size).subarray(0, size)
  const loan = memory.loanOf(body)
  const isUsedAgain = () => memory.take(size).buffer === body.buffer
  return { memory, body, loan, isUsedAgain }
}

t.test('a body that was written, and whose exchange is over, makes room for the next', async t => {
  const { loan, isUsedAgain } = lend()
  loan.begin()
  loan.finish()
  loan.end()
  t.ok(isUsedAgain())
  t.notOk(isUsedAgain(), 'once')
})

t.test('the last write may be over after the exchange', async t => {
  const { loan, isUsedAgain } = lend()
  loan.begin()
  loan.end()
  t.notOk(isUsedAgain())
  loan.finish()
  t.ok(isUsedAgain())
})

t.test('a write that never ends, or an exchange under way, keeps it', async t => {
  const failed = lend()
  failed.loan.begin()
  failed.loan.begin()
  failed.loan.finish()
  failed.loan.end()
  t.notOk(failed.isUsedAgain(), 'one of two writes failed')
  const open = lend()
  open.loan.begin()
  open.loan.finish()
  t.notOk(open.isUsedAgain(), 'it may be sent again')
  const unsent = lend()
  unsent.loan.end()
  t.notOk(unsent.isUsedAgain(), 'a client may still have it to send')
})

t.test('what somebody else reads is never used again', async t => {
  const { loan, isUsedAgain } = lend()
  loan.keep()
  loan.begin()
  loan.finish()
  loan.end()
  t.notOk(isUsedAgain())
})

t.test('a body is not sent after its exchange', async t => {
  const { loan } = lend()
  loan.end()
  t.throws(() => loan.begin())
})

t.test('memory that is not its own is freed, and never used again', async t => {
  const memory = createBodyMemory(most)
  const other = Buffer.alloc(131_072)
  const loan = memory.loanOf(other)
  loan.begin()
  loan.end()
  t.equal(other.length, 131_072, 'it is still being written')
  loan.finish()
  t.equal(other.length, 0)
  t.equal(memory.take(131_072).length, 131_072)
})

t.test('a part of other memory is left as it is', async t => {
  const memory = createBodyMemory(most)
  const part = Buffer.alloc(131_072, 'a').subarray(1)
  memory.give(part)
  t.equal(part.toString(), 'a'.repeat(131_071))
})

t.test('no more is kept than may be, and nothing that was not needed for a while', async t => {
  const full = lend(size)
  full.memory.give(full.body)
  t.notOk(full.isUsedAgain())
  const { memory, body, isUsedAgain } = lend()
  memory.give(body)
  memory.sweep()
  memory.sweep()
  t.notOk(isUsedAgain())
  t.equal(body.length, 0, 'it is freed')
})
