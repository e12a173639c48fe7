import t from 'tap'
import { assertDecisions } from '../../fixtures/decide-property.ts'
import { runs } from '../../fixtures/runs.ts'

t.test('effect, rule and terms are those of the whole request, decided in any way', async t => {
  assertDecisions(t, runs(100_000, 2_000))
})
