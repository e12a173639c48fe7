import t from 'tap'
import { doAtReadEnd, readFrom } from '../../src/upstream/exchange.ts'

const none = Buffer.alloc(0)

function noting() {
  const done: string[] = []
  const work = (name: string) => ({ atReadEnd: () => void done.push(name) })
  return { done, work }
}

t.test('work of a read is done at its end, before anything else', async t => {
  const { done, work } = noting()
  process.nextTick(() => done.push('tick'))
  readFrom(
    {
      read() {
        doAtReadEnd(work('end'))
        done.push('read')
      },
    },
    none,
  )
  t.strictSame(done, ['read', 'end'])
  await new Promise(setImmediate)
  t.strictSame(done, ['read', 'end', 'tick'], 'once')
})

t.test('other work is done after this turn, also behind a read that fails', async t => {
  const { done, work } = noting()
  const fails = {
    read() {
      doAtReadEnd(work('end'))
      throw new Error('malformed')
    },
  }
  t.throws(() => readFrom(fails, none), { message: 'malformed' })
  t.strictSame(done, ['end'])
  doAtReadEnd(work('alone'))
  t.strictSame(done, ['end'])
  await new Promise(setImmediate)
  t.strictSame(done, ['end', 'alone'])
})
