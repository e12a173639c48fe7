import t from 'tap'
import { LastBytes } from '../../../src/pipeline/outbound/last-bytes.ts'

t.test('it ends with the answer', async t => {
  let stopped = 0
  const last = new LastBytes(() => stopped++)
  last.add(1_000)
  last.end()
  await last.over
  t.equal(stopped, 0)
})

t.test('it stops the reading after 256 KiB', async t => {
  let stopped = 0
  const last = new LastBytes(() => stopped++)
  last.add(262_144)
  t.equal(stopped, 0)
  last.add(1)
  t.equal(stopped, 1)
  await last.over
})

t.test('it stops the reading a second after the head of the answer', async t => {
  const { promise: stopped, resolve } = Promise.withResolvers<void>()
  const last = new LastBytes(resolve)
  last.begin()
  await stopped
  await last.over
  t.pass()
})
