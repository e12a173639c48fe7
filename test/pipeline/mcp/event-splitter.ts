/** Event streams are cut into events, in bounded work for any stream. */
import { dataOf, EventSplitter, linesOf } from '../../../src/pipeline/mcp/event-splitter.ts'
import t from '../../fixtures/tap.ts'

const shortest = 28
const long = `id: 1\r\ndata: ${'x'.repeat(shortest)}\r\n\r\n`

t.test('each event that is not short is a piece, and short ones in a row are another', async t => {
  const splitter = new EventSplitter(shortest)
  const pieces = splitter.push(Buffer.from(`: a\n\n\n\ndata: 1\n\n${long}${long}:\r\r`))
  t.strictSame(
    pieces.map(({ bytes, isShort }) => [bytes.toString(), isShort]),
    [
      [': a\n\n\n\ndata: 1\n\n', true],
      [long, false],
      [long, false],
      [':\r\r', true],
    ],
  )
})

t.test('an event is the same in however many chunks it comes, and no byte is lost', async t => {
  const text = `:\n\n${long}\n\n${long}data: 1\n\n${long}rest`
  for (let size = 1; size < text.length; size++) {
    const splitter = new EventSplitter(shortest)
    const pieces = []
    for (let at = 0; at < text.length; at += size) pieces.push(...splitter.push(Buffer.from(text.slice(at, at + size))))
    pieces.push(splitter.rest())
    t.equal(pieces.map(({ bytes }) => bytes.toString()).join(''), text)
    const whole = pieces.filter(({ isShort }) => !isShort).map(({ bytes }) => dataOf(linesOf(bytes.toString()) ?? []))
    t.strictSame(
      whole,
      ['x', 'x', 'x'].map(char => char.repeat(shortest)),
      `chunks of ${size}`,
    )
  }
})

t.test('a chunk has no more pieces than events that are not short have room in it', async t => {
  const size = 65_536
  for (const text of ['\n', ':\n\n', 'data\n\n', 'data:1\r\r', `\n\n${'x'.repeat(shortest)}\n\n`]) {
    const splitter = new EventSplitter(shortest)
    const { length } = splitter.push(Buffer.alloc(size, text))
    t.ok(length <= (2 * size) / shortest, `${JSON.stringify(text)}: ${length} pieces`)
  }
})

t.test('an event of too many lines is not read', async t => {
  t.equal(linesOf('data\n'.repeat(9_999))?.length, 10_000)
  for (const end of ['\n', '\r', '\r\n']) t.equal(linesOf(`data${end}`.repeat(10_000)), undefined)
})
