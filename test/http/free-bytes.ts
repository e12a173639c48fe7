import t from 'tap'
import { freeBytes } from '../../src/http/free-bytes.ts'

t.test('the memory of long bytes is freed at once', async t => {
  const bytes = Buffer.allocUnsafeSlow(65_536)
  const before = process.memoryUsage().arrayBuffers
  freeBytes(bytes)
  t.equal(bytes.length, 0)
  t.ok(process.memoryUsage().arrayBuffers <= before - 65_536)
  t.doesNotThrow(() => freeBytes(bytes), 'twice')
})

t.test('bytes that share their memory with others are left as they are', async t => {
  const whole = Buffer.alloc(65_536, 'a')
  for (const part of [whole.subarray(1), whole.subarray(0, 60_000), Buffer.from(new SharedArrayBuffer(65_536))]) {
    const { length } = part
    freeBytes(part)
    t.equal(part.length, length)
  }
  t.equal(whole.length, 65_536)
})
