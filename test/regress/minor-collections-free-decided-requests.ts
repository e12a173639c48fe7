/** Each request with a body that a rule reads stayed in memory until the next full collection. */

import { getHeapSpaceStatistics } from 'node:v8'
import t from 'tap'
import { BodyDecision, decideHead } from '../../src/policy/evaluation/decide.ts'
import { collect, collectYoung } from '../fixtures/memory.ts'
import { described, rulebookOf } from '../fixtures/rulebook.ts'

const rulebook = rulebookOf({
  name: 'p',
  default: 'Allow',
  rules: [{ name: 'r', effect: 'Deny', conditions: [{ field: 'input.body.hay', operator: 'eq', value: 'needle' }] }],
})

function decideOne(): string | undefined {
  const { head, body } = described({ request: { method: 'POST', url: 'https://a.example/', body: { hay: 'straw' } } })
  const first = decideHead(rulebook, head)
  const decision = new BodyDecision(rulebook, head, 'need' in first ? first : undefined, body)
  return decision.takeTurn()?.decision
}

const oldBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? 0

t.test('minor collections free the requests of decisions on bodies', async t => {
  t.equal(decideOne(), 'Allow')
  collect()
  const before = oldBytes()
  for (let round = 0; round < 20; round++) {
    for (let count = 0; count < 50; count++) decideOne()
    collectYoung()
  }
  const grown = (oldBytes() - before) / 1_000
  t.ok(grown < 500, `1,000 decisions left ${grown.toFixed(1)} kB`)
})
