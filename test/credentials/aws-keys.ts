/** What the gateway remembers of keys of AWS, for speed. */
import t from 'tap'
import { keysIn } from '../../src/credentials/aws.ts'
import { collect } from '../fixtures/memory.ts'

t.test('keys are parsed once for a state, and forgotten with it: those before a rotation are not kept', async t => {
  const states = new Set([{ value: JSON.stringify({ keyId: 'AKIA1', secretKey: 'secret' }) }])
  const keys = [...states].map(state => {
    t.equal(keysIn(state), keysIn(state))
    return new WeakRef(keysIn(state))
  })
  states.clear()
  // What a job has seen lives until its end.
  await new Promise(setImmediate)
  collect()
  t.strictSame(
    keys.map(ref => ref.deref()),
    [undefined],
  )
})
