import t from 'tap'
import { noteStreamed } from '../../src/upstream/read-buffers.ts'

const mebibyte = 2 ** 20
const chunk = 65_536

t.test('buffers that a stream has left behind are freed while it goes on', async t => {
  let highest = 0
  for (let passed = 0; passed < 60 * mebibyte; passed += chunk) {
    // As node:net reads: a buffer of its own for each chunk.
    noteStreamed(Buffer.allocUnsafeSlow(chunk).length)
    highest = Math.max(highest, process.memoryUsage().arrayBuffers)
    // What is read arrives by turns of the event loop; no reference is left on the stack.
    if (passed % mebibyte === 0) await new Promise(setImmediate)
  }
  t.ok(highest < 40 * mebibyte, `${Math.round(highest / mebibyte)} MiB`)
  t.equal('gc' in globalThis, false, 'the program does not see the function')
})
