import t from 'tap'
import { type CompiledPolicy, compilePolicy, compilePolicySync } from '../../../src/policy/evaluation/compile.ts'
import { decideHead } from '../../../src/policy/evaluation/decide.ts'
import type { Decision, NeedBody } from '../../../src/policy/evaluation/decision.ts'
import { indexed } from '../../fixtures/decide-property.ts'
import { createRandom, pick, randomHead, randomNode } from '../../fixtures/random-policy.ts'
import { described, policyOf, rulebookOfCompiled } from '../../fixtures/rulebook.ts'
import { turnsDuring } from '../../fixtures/turns.ts'

const hosts = ['api.example.com', 'a.api.example.com', 'example.com', 'other.test', 'x.other.test']
const paths = ['/v1', '/v1/items', '/v1/items/7', '/v2/items', '/admin/', '/a/b/c/d/e/f/g/h']

/** Many rules, most of which name a host or a path, as in real policies. */
function largePolicy(random: () => number, count: number): object {
  const effects = ['Allow', 'Deny', 'Hitl']
  const rules = Array.from({ length: count }, (_, index) => {
    const conditions: object[] = [randomNode(random)]
    if (random() < 0.6) conditions.push({ field: 'input.host', operator: 'eq', value: pick(random, hosts) })
    else if (random() < 0.5) conditions.push({ field: 'input.host', operator: 'endsWith', value: '.example.com' })
    if (random() < 0.4)
      conditions.push({ field: 'input.path', operator: 'startsWith', value: `${pick(random, paths)}/` })
    if (random() < 0.2)
      conditions.push({ any: [...hosts].map(value => ({ field: 'input.host', operator: 'eq', value })) })
    return { name: `r${index}`, priority: Math.floor(random() * 20), effect: pick(random, effects), conditions }
  })
  return { name: 'p', default: 'Hitl', rules }
}

function answer(policy: CompiledPolicy, head: Parameters<typeof decideHead>[1]): object {
  const found: Decision | NeedBody = decideHead(rulebookOfCompiled(policy), head)
  return 'need' in found
    ? { pending: found.pending, otherwise: found.otherwise }
    : { rule: found.rule, effect: found.decision }
}

t.test('the index and asking every rule agree on large policies', async t => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = createRandom(seed)
  const differences: object[] = []
  for (let count = 0; count < 60 && differences.length === 0; count++) {
    const compiled = compilePolicySync(policyOf(largePolicy(random, 20 + Math.floor(random() * 500))))
    const linear = indexed(compiled, Number.POSITIVE_INFINITY)
    for (let index = 0; index < 40; index++) {
      const { head } = described(randomHead(random))
      const open = { ...head, contentLength: -1 }
      const [found, wanted] = [answer(compiled, open), answer(linear, open)]
      if (JSON.stringify(found) !== JSON.stringify(wanted)) differences.push({ seed, found, wanted, url: head.url })
    }
  }
  t.strictSame(differences, [])
})

t.test('the index leaves few rules to ask', async t => {
  const rules = Array.from({ length: 3_000 }, (_, index) => ({
    name: `r${index}`,
    effect: 'Deny',
    conditions: [
      { field: 'input.host', operator: 'eq', value: `h${Math.floor(index / 100)}.example` },
      { field: 'input.path', operator: 'pathMatches', value: `/v1/r${index % 100}/**` },
    ],
  }))
  const rulebook = rulebookOfCompiled(compilePolicySync(policyOf({ name: 'p', rules })))
  const { head } = described({ request: { url: 'https://h7.example/v1/r42/x' } })
  t.match(decideHead(rulebook, head), { decision: 'Deny', rule: 'r742', evaluated: 1 })
  const { head: other } = described({ request: { url: 'https://nowhere.example/v1/r42/x' } })
  t.match(decideHead(rulebook, other), { source: 'default', evaluated: 0 })
})

t.test('the index finds rules by the host of an origin', async t => {
  const rules = Array.from({ length: 300 }, (_, index) => ({
    name: `r${index}`,
    effect: 'Deny',
    conditions: [
      { field: 'input.origin', operator: index % 2 === 0 ? 'eq' : 'in', value: `HTTPS://H${index}.example:443` },
    ],
  }))
  const rulebook = rulebookOfCompiled(compilePolicySync(policyOf({ name: 'p', rules })))
  for (const [url, decision, evaluated] of [
    ['https://h42.example/', { rule: 'r42' }, 1],
    ['https://h43.example/', { rule: 'r43' }, 1],
    ['https://h42.example:8443/', { source: 'default' }, 1],
    ['https://nowhere.example/', { source: 'default' }, 0],
  ] as const) {
    t.match(decideHead(rulebook, described({ request: { url } }).head), { ...decision, evaluated }, url)
  }
})

t.test('compiling lets other work run, to the same result', async t => {
  const policy = policyOf(largePolicy(createRandom(1), 500))
  t.ok((await turnsDuring(() => compilePolicy(policy))) >= 4)
  const compiled = await compilePolicy(policy)
  t.equal(compiled.version, compilePolicySync(policy).version)
  t.equal(compiled.rules.length, 500)
})

t.test('a rule that names a host twice is asked once', async t => {
  const rules = Array.from({ length: 29 }, (_, index) => ({
    name: `r${index}`,
    effect: 'Deny',
    conditions: [
      { field: 'input.host', operator: 'in', value: ['a.example', 'A.example'] },
      { field: 'input.body.x', operator: 'eq', value: '1' },
    ],
  }))
  const rulebook = rulebookOfCompiled(compilePolicySync(policyOf({ name: 'p', default: 'Allow', rules })))
  const { head } = described({ request: { method: 'POST', url: 'https://a.example/', body: { x: 2 } } })
  const found = decideHead(rulebook, head)
  t.equal('need' in found && new Set(found.pending).size, 29)
  t.equal('need' in found && found.pending.length, 29)
})
