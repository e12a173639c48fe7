import { assertDecisions } from '../../fixtures/decide-property.ts'
import t from '../../fixtures/tap.ts'

// Other policies in each run: the seed is random, and a failure shows it.
t.test('the head decision is the full decision, by index and plain interpreter', async t => {
  assertDecisions(t, 15_000)
})
