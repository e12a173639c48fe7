import { assertDecisions } from '../../fixtures/decide-property.ts'
import { runs } from '../../fixtures/runs.ts'
import t from '../../fixtures/tap.ts'

t.test('effect, rule and terms are those of the whole request, decided in any way', async t => {
  assertDecisions(t, runs(100_000))
})
