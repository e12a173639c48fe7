/** Bytes that come in pieces. */

import t from 'tap'
import { GrowingBuffer } from '../../src/base/growing-buffer.ts'

t.test('pieces of any length become one, and the next ones another', async t => {
  const gathered = new GrowingBuffer()
  const piece = Buffer.from('ab')
  gathered.add(piece)
  piece.fill(0)
  gathered.add(Buffer.alloc(0))
  gathered.add(Buffer.from('c'.repeat(5_000)))
  t.equal(gathered.size, 5_002)
  const first = gathered.take()
  gathered.add(Buffer.from('d'))
  t.equal(first.toString(), `ab${'c'.repeat(5_000)}`)
  t.equal(gathered.take().toString(), 'd')
  t.equal(gathered.take().length, 0)
})

t.test('a million pieces of one byte take one memory, and are copied a few times at most', async t => {
  const gathered = new GrowingBuffer()
  const piece = Buffer.from('x')
  const memories = new Set<ArrayBufferLike>()
  for (let at = 0; at < 1_000_000; at++) gathered.add(piece)
  memories.add(gathered.take().buffer)
  t.equal(memories.size, 1)
  t.ok([...memories].every(({ byteLength }) => byteLength < 3_000_000))
})
