/** Which requests the counts of a shape stand for. Threat T80. */
import t from 'tap'
import type { KeptShape } from '../../../src/policy/propose/kept.ts'
import { learn } from '../../../src/policy/propose/learn.ts'
import { type CountedShape, readShape } from '../../../src/policy/propose/recorded.ts'

const head = { method: 'GET', origin: 'https://api.example', unfit: null } as const
const bodiless = { facts: [['input.bodyInfo.size', '0']], names: [['input.queryString', []]] } as const
const outcome = { effect: 'Allow', policy: 'p', rule: null, status: 2, verdict: null, signal: null } as const

const counted = (path: KeptShape['path'], values: CountedShape['values'], over: Partial<CountedShape> = {}) => ({
  ...{ agentId: 'a1', shape: { ...head, path, ...bodiless }, outcome, values, fields: {} },
  ...{ count: 9, firstAt: 0, lastAt: 86_400_000, days: [0, 1] },
  ...over,
})

function patternsOf(all: readonly CountedShape[], isExact = false): unknown {
  const read = all.map(one => readShape(one, isExact))
  const unfit = read.find(one => 'unfit' in one)
  if (unfit !== undefined) return unfit
  const requests = read.flatMap(one => ('unfit' in one ? [] : one.requests))
  const options = { isExact, promotes: false, unseen: 'Hitl' } as const
  const { document } = learn('p', { recorded: requests, eligible: requests }, options)
  return document.rules.map(({ conditions }) => JSON.stringify(conditions).match(/"\/[^"]*"/g))
}

const int = ['int', 0] as const
const ids = ['1', '2', '3']

t.test('ids are a class from three on, and are told apart in one place at most', async t => {
  t.strictSame(patternsOf([counted(['users', int], [ids])]), [['"/users/{id:int}"']])
  t.strictSame(patternsOf([counted(['users', int], [['1', '2']])]), [['"/users/1"', '"/users/2"']])
  t.strictSame(patternsOf([counted(['users', int, 'orders', int], [ids, ['7', '8']])]), [
    ['"/users/{id:int}/orders/7"', '"/users/{id:int}/orders/8"'],
  ])
  const several = { unfit: 'few ids in several places' }
  t.strictSame(
    patternsOf([
      counted(
        ['users', int, 'orders', int],
        [
          ['1', '2'],
          ['7', '8'],
        ],
      ),
    ]),
    several,
  )
  t.strictSame(patternsOf([counted([int, 'orders', int], [ids, ['7', '8']])]), several, 'the first place is no class')
  t.strictSame(patternsOf([counted(['users', int], [[]])]), { unfit: 'an id that was not kept' })
})

t.test('with all ids kept a shape of more than are known is of no use', async t => {
  t.strictSame(patternsOf([counted(['users', int], [ids])], true), [['"/users/1"', '"/users/2"', '"/users/3"']])
  const eight = Array.from({ length: 8 }, (_, n) => `${n}`)
  t.strictSame(patternsOf([counted(['users', int], [eight])], true), { unfit: 'more ids than were kept' })
})

t.test('a denial of any id of a class makes the pattern of the class wait, and that of the same id', async t => {
  const denied = { outcome: { ...outcome, effect: 'Deny', status: 4 } } as const
  for (const path of [ids, ['1']]) {
    const allowed = readShape(counted(['users', int], [path]), false)
    const other = readShape(counted(['users', int], [['9', '1', '8']], denied), false)
    if ('unfit' in allowed || 'unfit' in other) throw new Error('it is fit')
    t.match(other.ineligible, 'denied by a policy')
    const observed = { recorded: [...allowed.requests, ...other.requests], eligible: allowed.requests }
    const { document } = learn('p', observed, { isExact: false, promotes: false, unseen: 'Hitl' })
    t.strictSame(
      document.rules.map(({ effect }) => effect),
      ['Hitl'],
    )
  }
})
