import { assertDecisions } from '../../fixtures/decide-property.ts'
import { runs } from '../../fixtures/runs.ts'
import t from '../../fixtures/tap.ts'

t.test('the head decision is the full decision, by index and plain interpreter', async t => {
  assertDecisions(t, runs(60_000))
})
