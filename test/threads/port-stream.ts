import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as after } from 'node:timers/promises'
import { MessageChannel } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { PortStream } from '../../src/threads/port-stream.ts'

function openPair(t: Test) {
  const { port1, port2 } = new MessageChannel()
  const pair = [new PortStream(port1), new PortStream(port2, { remoteAddress: '192.0.2.7' })] as const
  t.teardown(() => {
    for (const stream of pair) stream.destroy()
  })
  return pair
}

const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

t.test('bytes arrive whole and in order, both ways, and each way ends by itself', async t => {
  const [left, right] = openPair(t)
  t.equal(right.remoteAddress, '192.0.2.7')
  const sent = randomBytes(1_000_000)
  const chunks: Buffer[] = []
  right.on('data', chunk => chunks.push(chunk))
  for (let at = 0; at < sent.length; at += 70_001) left.write(sent.subarray(at, at + 70_001))
  left.end()
  await once(right, 'end')
  t.equal(hashOf(Buffer.concat(chunks)), hashOf(sent))
  t.equal(right.bytesRead, sent.length)
  right.end('and back')
  let back = ''
  for await (const chunk of left) back += chunk
  t.equal(back, 'and back')
})

t.test('a slow reader holds the writer back', async t => {
  const [left, right] = openPair(t)
  const chunk = Buffer.alloc(16_384)
  let taken = 0
  const write = (): void => {
    left.write(chunk, () => {
      taken += 1
      if (taken < 1_000) write()
    })
  }
  write()
  // Time enough for all of it, if nobody held it back.
  await after(200)
  t.ok(taken < 20, `${taken} chunks were taken although nobody reads`)
  right.resume()
  while (taken < 1_000) await new Promise(setImmediate)
})

t.test('when one side is destroyed the other one closes', async t => {
  const [left, right] = openPair(t)
  left.destroy()
  await once(right, 'close')
  t.ok(right.destroyed)
})

t.test('what was written before the end arrives although the end is at once', async t => {
  const [left, right] = openPair(t)
  left.write('last words')
  left.destroySoon()
  let text = ''
  for await (const chunk of right) text += chunk
  t.equal(text, 'last words')
})
