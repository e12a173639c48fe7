import t from 'tap'
import { formatProblem } from '../../src/config/given.ts'
import { loadConfig } from '../../src/config/load.ts'

const problems = (text: string): string[] => {
  const loaded = loadConfig({ file: { path: 'gateway.yaml', text }, env: {} })
  return 'problems' in loaded ? loaded.problems.map(formatProblem) : []
}

t.test('at most 8 budgets may apply to one call', async t => {
  const budgets = (count: number, more: (n: number) => object = () => ({})) =>
    problems(JSON.stringify({ Budgets: Array.from({ length: count }, (_, n) => ({ Name: `b${n}`, ...more(n) })) }))
  t.strictSame(budgets(8), [])
  t.match(budgets(9), [/Budgets: at most 8 may apply to one call, and these may: b0, b1, .*b8/])
  t.strictSame(
    budgets(90, n => ({ Owners: [`owner ${n % 30}`, 'all'].slice(0, n < 8 ? 2 : 1) })),
    [],
  )
  t.match(
    budgets(9, n => ({ Owners: [`owner ${n}`, 'all'] })),
    [/at most 8/],
  )
  t.match(
    budgets(9, n => ({ Models: [`model-${n}`] })),
    [/at most 8/],
    'a call may name no model',
  )
  t.strictSame(
    budgets(12, n => ({ Hosts: [`h${n}.example`] })),
    [],
  )
  t.match(
    budgets(9, n => ({ Hosts: [`*.h${n}.example`] })),
    [/at most 8/],
  )
  t.strictSame(
    budgets(10, n => (n < 5 ? { Policies: ['p'] } : { Policies: ['q'], Owners: ['o'] })),
    [],
  )
  t.match(
    budgets(10, n => (n < 5 ? { Policies: ['p'] } : { Owners: ['o'] })),
    [/at most 8/],
  )
})
