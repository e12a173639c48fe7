import fc from 'fast-check'
import t from 'tap'
import { readHead } from '../../src/upstream/http1-head.ts'
import { HeadMemory } from '../../src/upstream/known-head.ts'
import { runs } from '../fixtures/runs.ts'

const heads = [
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n',
  'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n',
  'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n',
]

t.test('a remembered head is what parsing it gives, whatever came before and for whichever method', async t => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom(...heads), fc.constantFrom('GET', 'HEAD', 'POST'))), answers => {
      const memory = new HeadMemory(readHead)
      for (const [text, method] of answers) {
        const { known: _, ...head } = memory.read(text, method)
        const { known, ...parsed } = readHead(text, method)
        t.strictSame(head, parsed)
        t.equal(known, undefined)
        const bytes = Buffer.from(`before${text}\r\nbody`)
        for (const other of ['GET', 'HEAD', 'POST']) {
          const found = memory.find(bytes, 'before'.length, other)
          if (found !== undefined) t.strictSame([found, other], [memory.read(text, method), method])
        }
      }
    }),
    { numRuns: runs(400) },
  )
})

t.test('a malformed head is refused each time, and the one before it is still known', async t => {
  const memory = new HeadMemory(readHead)
  const [good = ''] = heads
  const first = memory.read(good, 'GET')
  for (let time = 0; time < 2; time++) {
    const error = t.throws(() => memory.read('HTTP/1.1 200 OK\r\nbad field: x\r\n', 'GET'))
    t.match(error, { fault: 'malformed' })
  }
  t.equal(memory.read(good, 'GET'), first)
})

t.test('a head that came again can carry what was made of it, and one that came once cannot', async t => {
  const memory = new HeadMemory(readHead)
  const [good = '', other = ''] = heads
  t.equal(memory.read(good, 'GET').known, undefined)
  const { known } = memory.read(good, 'GET')
  t.not(known, undefined)
  t.equal(memory.read(good, 'GET').known, known)
  t.equal(memory.read(other, 'GET').known, undefined)
  t.equal(memory.read(good, 'GET').known, undefined)
})

t.test('a head that came again is found by its bytes alone, whole, and for its method', async t => {
  const memory = new HeadMemory(readHead)
  const [good = '', other = ''] = heads
  const bytes = Buffer.from(`${good}\r\nhello`)
  memory.read(good, 'GET')
  t.equal(memory.find(bytes, 0, 'GET'), undefined, 'it came once')
  const head = memory.read(good, 'GET')
  t.equal(memory.find(bytes, 0, 'GET'), head)
  t.equal(bytes.toString('latin1', memory.length), 'hello')
  t.equal(memory.find(bytes, 0, 'HEAD'), undefined)
  t.equal(memory.find(bytes, 1, 'GET'), undefined)
  t.equal(memory.find(bytes.subarray(0, memory.length - 1), 0, 'GET'), undefined, 'its end is missing')
  t.equal(memory.find(Buffer.from(`${other}\r\nhello`), 0, 'GET'), undefined)
})
