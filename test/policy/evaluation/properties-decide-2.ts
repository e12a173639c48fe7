import { assertDecisions } from '../../fixtures/decide-property.ts'
import t from '../../fixtures/tap.ts'

// Half of the 60,000 policies of a run; two files, so that two processes share the work.
t.test('the head decision is the full decision, by index, program and plain interpreter', async t => {
  assertDecisions(t, 30_000)
})
