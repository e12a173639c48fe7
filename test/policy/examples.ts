import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { compilePolicySync } from '../../src/policy/compile.ts'
import type { RequestDescription } from '../../src/policy/describe.ts'
import { explainDescription } from '../../src/policy/explain.ts'
import { defaultRiskSettings } from '../../src/policy/risk-signals.ts'
import { policyOf, rulebookOfCompiled } from '../fixtures/rulebook.ts'

interface Suite {
  readonly policy: string
  readonly tests: readonly (RequestDescription & { name: string; expect: Record<string, unknown> })[]
}

const folder = new URL('../../policies/', import.meta.url)
const read = (name: string) => parse(readFileSync(new URL(name, folder), 'utf8'))

for (const name of readdirSync(folder).filter(name => name.endsWith('.test.yaml'))) {
  const suite = read(name) as Suite
  t.test(`the shipped policy ${suite.policy} does what its tests say`, async t => {
    const compiled = compilePolicySync(policyOf(read(name.replace('.test', ''))))
    const rulebook = rulebookOfCompiled(compiled, { risk: defaultRiskSettings })
    t.equal(compiled.name, suite.policy)
    for (const test of suite.tests) {
      const explained = explainDescription(rulebook, test, 0)
      t.match(explained, { result: test.expect }, test.name)
    }
  })
}
