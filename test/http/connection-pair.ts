import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { ConnectionEnd } from '../../src/http/connection-pair.ts'

function openPair() {
  const [near, far] = [new ConnectionEnd(), new ConnectionEnd()]
  ConnectionEnd.join(near, far)
  return { near, far }
}

t.test('what is written at one end is read at the other, and counted at both', async t => {
  const { near, far } = openPair()
  near.end('hello')
  far.end('back')
  t.strictSame(await Promise.all([text(far), text(near)]), ['hello', 'back'])
  t.strictSame([near.bytesWritten, far.bytesRead, far.bytesWritten, near.bytesRead], [5, 5, 4, 4])
})

t.test('a reader that does not read stops the writer, and the writer may use its memory again', async t => {
  const { near, far } = openPair()
  const memory = Buffer.alloc(65_536, 'a')
  while (near.write(memory)) await new Promise(setImmediate)
  t.ok(near.writableLength > 0)
  t.ok(near.bytesWritten - near.writableLength <= 2 * 65_536)
  memory.fill('b')
  t.equal(String(far.read(1)), 'a')
})

t.test('an end that is destroyed cuts the other off, but not what was sent before an end', async t => {
  const one = openPair()
  one.near.write('part')
  one.near.destroy()
  await once(one.far, 'close')
  t.notOk(one.far.readableEnded)
  const two = openPair()
  two.near.end('whole')
  await once(two.near, 'finish')
  two.near.destroy()
  t.equal(await text(two.far), 'whole')
})

t.test('destroySoon sends what was written first, and destroys at once when nothing is left', async t => {
  const { near, far } = openPair()
  near.write('last')
  near.destroySoon()
  t.equal(await text(far), 'last')
  if (!near.destroyed) await once(near, 'close')
  const done = openPair()
  done.near.end()
  await once(done.near, 'finish')
  done.near.destroySoon()
  t.ok(done.near.destroyed)
})
