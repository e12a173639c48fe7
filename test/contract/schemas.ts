import { readdirSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import t from 'tap'
import { parse } from 'yaml'
import { parsePolicy } from '../../src/policy/language/parse.ts'
import { createRandom, randomPolicy } from '../fixtures/random-policy.ts'
import { gatewaySchema, policySchema, policyTestSchema, schemaText } from '../fixtures/schemas.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(resolve(root, path), 'utf8')

t.test('the schema of tests of policies is that of the code', async t => {
  const name = 'policy-test.schema.json'
  t.equal(read(name), schemaText(name), 'Rewrite it with: node test/fixtures/schemas.ts')
})

const ajv = new Ajv({ strict: false, allErrors: true })
ajv.addSchema(policySchema(), 'policy.schema.json')
const checks = {
  'gateway.schema.json': ajv.compile(gatewaySchema()),
  'policy.schema.json': ajv.getSchema('policy.schema.json')!,
  'policy-test.schema.json': ajv.compile(policyTestSchema()),
}

const shipped = [
  'gateway.yaml',
  ...readdirSync(resolve(root, 'policies'), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.yaml'))
    .map(name => `policies/${name}`),
]

t.test('every shipped file names its schema in the first line, and keeps to it', async t => {
  for (const file of shipped) {
    const text = read(file)
    const name = file === 'gateway.yaml' ? 'gateway' : file.endsWith('.test.yaml') ? 'policy-test' : 'policy'
    const path = relative(dirname(file), `${name}.schema.json`)
    t.equal(text.split('\n')[0], `# yaml-language-server: $schema=${path.startsWith('.') ? path : `./${path}`}`, file)
    const check = checks[`${name}.schema.json` as keyof typeof checks]
    t.ok(check(parse(text)), `${file}: ${JSON.stringify(check.errors?.slice(0, 3))}`)
  }
})

t.test('every setting with its default keeps to the schema', async t => {
  const uncommented = read('gateway.yaml').replace(/^( *)#([\w-]+: .+)$/gm, '$1$2')
  const check = checks['gateway.schema.json']
  t.ok(check(parse(uncommented)), JSON.stringify(check.errors?.slice(0, 3)))
})

t.test('the schemas take letter case as the gateway does, and find mistakes', async t => {
  const gateway = checks['gateway.schema.json']
  t.ok(gateway(parse('system: { SERVER: { http: { Port: 80 } } }')))
  for (const wrong of ['Sytem: {}', 'System: { Server: { Http: { Port: eighty } } }', 'Policy: { Mode: strict }']) {
    t.notOk(gateway(parse(wrong)), wrong)
  }
  const policy = checks['policy.schema.json']
  const condition = 'conditions: [{ field: input.method, operator: EQ, value: GET }]'
  t.ok(policy(parse(`{ Name: p, default: deny, rules: [{ name: r, Effect: ALLOW, ${condition} }] }`)))
  for (const wrong of [
    '{ rules: [] }',
    '{ name: p, rules: [{ name: r, effect: Permit, conditions: [] }] }',
    '{ name: p, rules: [{ name: r, effect: Deny }] }',
    '{ name: p, rules: [{ name: r, effect: Deny, condition: [] }] }',
    '{ name: p, rules: [{ name: r, effect: Deny, conditions: [{ field: input.methd, operator: eq, value: x }] }] }',
    '{ name: p, rules: [{ name: r, effect: Deny, conditions: [{ field: input.method, operator: equal, value: x }] }] }',
    '{ name: p, rules: [{ name: r, effect: Deny, conditions: [{ any: [] }] }] }',
  ]) {
    t.notOk(policy(parse(wrong)), wrong)
    t.hasProp(parsePolicy(parse(wrong)), 'problems', wrong)
  }
})

t.test('policies that the parser takes keep to the schema', async t => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = createRandom(seed)
  const check = checks['policy.schema.json']
  const found: unknown[] = []
  for (let count = 0; count < 50; count++) {
    const document = randomPolicy(random, 5)
    if (!('problems' in parsePolicy(document)) && !check(document))
      found.push({ seed, document, errors: check.errors?.slice(0, 3) })
  }
  t.strictSame(found, [])
})
