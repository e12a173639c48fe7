import t from 'tap'
import { compileRule } from '../../../src/policy/evaluation/rule.ts'
import { Zone } from '../../../src/policy/language/fields/zone.ts'
import type { DescribedRequest } from '../../../src/policy/request/describe.ts'
import { Facts } from '../../../src/policy/request/facts.ts'
import { noRisk } from '../../../src/policy/risk/risk.ts'
import { False, True, type Truth } from '../../../src/policy/values/truth.ts'
import {
  createRandom,
  pick,
  randomCondition,
  randomHead,
  randomNode,
  withBodies,
} from '../../fixtures/random-policy.ts'
import { policyOf } from '../../fixtures/rulebook.ts'
import { runs } from '../../fixtures/runs.ts'

const policies = runs(60_000)
const seed = Math.floor(Math.random() * 2 ** 32)
const scope = { zone: new Zone('UTC'), hiddenHeaders: new Set<string>() }
type Node = Record<string, unknown>

/** The values of nodes, each at the head and with three bodies. */
function valuesOf(nodes: readonly Node[], requests: readonly DescribedRequest[]): readonly (readonly Truth[])[] {
  const rules = nodes.map((node, index) => ({ name: `r${index}`, effect: 'Deny', conditions: [node] }))
  const policy = policyOf({ name: 'p', rules })
  const compiled = policy.rules.map((rule, rank) => compileRule(rule, { policy, scope, rank, options: {} }).nodes[0]!)
  const facts = requests.flatMap(({ head, body }) => {
    const known = new Facts(head, noRisk)
    return [new Facts({ ...head, contentLength: -1 }, noRisk), known.withBody(body, noRisk)]
  })
  return compiled.map(({ test }) => facts.map(test))
}

const negations: Readonly<Record<string, string>> = {
  eq: 'ne',
  in: 'notIn',
  startsWith: 'notStartsWith',
  endsWith: 'notEndsWith',
  contains: 'notContains',
  like: 'notLike',
  pathMatches: 'notPathMatches',
  hostMatches: 'notHostMatches',
  matches: 'notMatches',
  ipIn: 'notIpIn',
  exists: 'notExists',
}

const moreShapes: readonly Node[] = [
  { field: 'input.headers.x-team', operator: 'endsWith', value: 'd' },
  { field: 'input.body.tag', operator: 'matches', value: '^[rR]ed$' },
  { field: 'input.body.list[*].tag', operator: 'matches', value: 'e' },
  { field: 'input.clientIp', operator: 'ipIn', value: '127.0.0.0/8' },
  { field: 'input.body.tag', operator: 'ipIn', value: '::/0,0.0.0.0/0' },
  { field: 'input.bodyText', operator: 'contains', value: 'red' },
]

function randomPositive(random: () => number): Node {
  for (;;) {
    const condition = random() < 0.2 ? pick(random, moreShapes) : randomCondition(random)
    if (Object.hasOwn(negations, condition['operator'] as string)) return condition
  }
}

t.test(`identities hold in ${policies} random policies (seed ${seed})`, async t => {
  const random = createRandom(seed)
  const broken: unknown[] = []
  const check = (name: string, left: readonly Truth[], right: readonly Truth[], nodes: unknown) => {
    if (left.join() !== right.join()) broken.push({ name, seed, nodes, left, right })
  }
  for (let count = 0; count < policies && broken.length === 0; count++) {
    const positive = randomPositive(random)
    const { operator, value } = positive as { operator: string; value: unknown }
    const negated = { ...positive, operator: negations[operator] }
    const [a, b] = [randomNode(random), randomNode(random)]
    const folded = { ...positive, ignoreCase: true }
    const list = { ...positive, operator: 'in', value: [value] }
    const nodes = [
      ...[positive, negated, { not: positive }],
      ...[
        { not: { all: [a, b] } },
        { any: [{ not: a }, { not: b }] },
        { not: { any: [a, b] } },
        { all: [{ not: a }, { not: b }] },
      ],
      ...[{ all: [a, b] }, { all: [b, a] }, { any: [a, b] }, { any: [b, a] }, { not: { not: a } }, a],
      ...[folded, operator === 'eq' ? list : positive],
    ]
    const [yes, no, notYes, notAll, anyNot, notAny, allNot, ab, ba, aOrB, bOrA, notNotA, onlyA, loose, inList] =
      valuesOf(nodes, withBodies(randomHead(random), 1, random)) as Truth[][]
    check('the negated form is the negation', no!, notYes!, negated)
    check('not all is any not', notAll!, anyNot!, [a, b])
    check('not any is all not', notAny!, allNot!, [a, b])
    check('order does not matter in all', ab!, ba!, [a, b])
    check('order does not matter in any', aOrB!, bOrA!, [a, b])
    check('not not is nothing', notNotA!, onlyA!, a)
    check('in [a] is eq a', operator === 'eq' ? inList! : yes!, yes!, positive)
    const lost = yes!.map((strict, index) => (strict === True && loose![index] === False ? 1 : 0) as Truth)
    check(
      'ignoreCase never turns true into false',
      lost,
      lost.map(() => False),
      positive,
    )
  }
  t.strictSame(broken, [])
})
