import t from 'tap'
import { KeptHits } from '../../src/gateway/rule-hits.ts'
import { RuleTally } from '../../src/limits/rule-tally.ts'
import { compilePolicySync } from '../../src/policy/evaluation/compile.ts'
import { formatPolicy } from '../../src/policy/language/format.ts'
import type { RuleHits } from '../../src/storage/hits.ts'
import { createClock } from '../fixtures/clock.ts'
import { policyOf } from '../fixtures/rulebook.ts'

const listOf = (effect: string) => {
  const rules = ['changed', 'same'].map(name => ({ name, effect: name === 'same' ? 'Deny' : effect, conditions: [] }))
  const compiled = compilePolicySync(policyOf({ name: 'p', rules }))
  return [{ compiled, document: formatPolicy(compiled.policy) }]
}

t.test('what was counted before a change of policies counts for the rules before it, in other threads too', async t => {
  const stored: RuleHits[] = []
  const recent = { hits: new RuleTally() }
  const hits = new KeptHits({
    ...{ recent, clock: createClock(), report: () => {} },
    rules: { policies: { book: { list: () => listOf('Allow') } } },
    store: { hits: { add: async (all: RuleHits[]) => void stored.push(...all), of: async () => stored } },
  } as unknown as ConstructorParameters<typeof KeptHits>[0])
  const ofThread = (rule: string, count: number) => hits.add([{ policy: 'p', rule, would: null, count }])
  const shown = async () => (await hits.of('p')).map(({ rule, count }) => `${rule} ${count}`).sort()

  for (const rule of ['changed', 'same', 'gone']) recent.hits.note('p', rule)
  const changePolicies = async () => {
    recent.hits.note('p', 'changed')
    await hits.flush()
    ofThread('changed', 10)
    ofThread('same', 10)
  }
  await hits.follow(listOf('Hitl'), { changePolicies })
  t.strictSame(await shown(), ['changed 1', 'same 11'])
  ofThread('changed', 5)
  t.strictSame(await shown(), ['changed 6', 'same 11'])
  t.equal(
    stored.filter(({ rule }) => rule === 'changed').reduce((sum, { count }) => sum + count, 0),
    17,
  )
})
