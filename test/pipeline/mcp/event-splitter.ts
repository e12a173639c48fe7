/** Event streams are cut into events, in bounded work for any stream. */

import t from 'tap'
import { EventSplitter, readEvent, withData } from '../../../src/pipeline/mcp/event-splitter.ts'
import { threadTimeOf } from '../../fixtures/cpu-time.ts'

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
    const whole = pieces.filter(({ isShort }) => !isShort).map(({ bytes }) => readEvent(bytes.toString())?.data)
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
  t.equal(readEvent('data\n'.repeat(9_999))?.data.length, 9_998)
  for (const end of ['\n', '\r', '\r\n', '\u2028']) t.equal(readEvent(`data${end}`.repeat(10_000)), undefined)
})

t.test('the data of an event is what every reader finds in it', async t => {
  const one = 'event: a\nid: 1\ndata: x\n\n'
  for (const event of [
    one,
    one.replaceAll('\n', '\r\n'),
    'data:x\r\r',
    '\ufeffdata: x\n\n',
    'event:a\u2028b\ndata: x\n\n',
  ]) {
    t.equal(readEvent(event)?.data, 'x', encodeURI(event))
  }
  t.equal(readEvent('data: x\ndata: y\n\n')?.data, 'x\ny')
  for (const event of [
    // Go does not end a line at a return.
    'data:\rx\n\n',
    'data: {\r"result":1}\n\n',
    // Python ends it at these.
    'event: a\u2028data: x\ndata: y\n\n',
    'data: x\u0085data: y\n\n',
    'data: x\vdata: y\n\n',
    // Some readers drop the mark, and some the line.
    '\ufeffdata: x\ndata: y\n\n',
    '"result":1}\n\n',
  ]) {
    t.equal(readEvent(event), undefined, encodeURI(event))
  }
})

t.test('an event with other data keeps its other lines, and no mark', async t => {
  const event = readEvent('\ufeffdata: x\nid: 1\nevent: a\n\n')
  t.equal(event && withData(event, 'y'), 'id: 1\nevent: a\ndata: y\n\n')
})

t.test('carriage returns in a line take no longer than so many lines', async t => {
  const timeOf = (line: string) =>
    threadTimeOf(() => {
      for (let n = 0; n < 10; n++) readEvent(`data: {}\n${line}x\n`)
    })
  const usual = timeOf('y\n'.repeat(9_900))
  t.ok(timeOf('\r'.repeat(9_900)) < 5 * usual, `${usual} ms of CPU time`)
})
