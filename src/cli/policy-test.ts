import { resolve } from 'node:path'
import { StartupError } from '../base/refusals.ts'
import { type PreparedSet, prepareSet } from '../policies/entry.ts'
import { decisionSettings, languageOf, soloRulebook } from '../policies/language.ts'
import { readFixedPolicies } from '../policies/open.ts'
import { type PolicySuite, readPolicySuites, runPolicyTest } from '../policies/policy-tests.ts'
import type { DecisionSettings } from '../policy/evaluation/rulebook.ts'
import { systemClock } from '../runtime/clock.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { jsonHelp, jsonOption, printJson, readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway policy test [DIR] [--coverage] [--json] [--config FILE]

Runs the tests of policies: the files *.test.yaml of DIR (Policy:Directory if absent), against the policies in DIR
and in the configuration file. Exit code 0 when all of them pass, else 1.

  --coverage     also list the rules that no test matches, and the policies of DIR that have no tests; either makes the exit code 1
${jsonHelp}: ok, passed, failed, mistakes, tests, unmatched
${configHelp}

Examples:
  agent-gateway policy test policies --coverage
  agent-gateway policy test --json | jq -r '.tests[] | select(.faults != []) | .place'

A test file:

  policy: support-agent
  tests:
    - name: a large refund needs a person
      request: { method: POST, url: https://api.shop.example/v1/refunds/1, body: { amount: 250 } }
      agent: { trustScore: 0.6 }
      expect: { decision: Hitl, rule: the-rest-needs-a-person }

A test without time runs on Monday, 2026-01-05, at 12:00 UTC.`

const options = { ...configOption, ...jsonOption, coverage: { type: 'boolean' } } as const

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, options, 1)
  const { config, baseDirectory } = readConfiguration(shell, values.config)
  const directory = positionals[0] ?? resolve(baseDirectory, config.Policy.Directory)
  const fixed = await readFixedPolicies({ directory, inline: config.Policies, clock: systemClock })
  const policies = await prepareSet(languageOf(config), fixed.inputs)
  const { suites, lines } = await readPolicySuites(directory).catch(({ code }) => {
    throw new StartupError(`${directory} cannot be read (${code}). Name a folder of policies and their tests.`)
  })
  const mistakes = [...fixed.lines, ...policies.lines, ...lines]
  if (suites.length === 0 && mistakes.length === 0) mistakes.push(`${directory}: there is no *.test.yaml here`)
  const outcomes = suites.map(suite => runSuite(suite, policies, decisionSettings(config)))
  const tests = outcomes.flatMap(outcome => outcome.tests)
  const passed = tests.filter(({ faults }) => faults.length === 0).length
  const unmatched = values.coverage === true ? listUnmatched(policies, outcomes) : []
  const result = {
    ok: mistakes.length + unmatched.length === 0 && passed === tests.length,
    ...{ passed, failed: tests.length - passed },
    ...{ mistakes: [...mistakes, ...outcomes.flatMap(outcome => outcome.mistakes)], tests, unmatched },
  }
  if (values.json === true) printJson(shell, result)
  else printLines(shell, result)
  return result.ok ? 0 : 1
}

interface TestResult {
  readonly policy: string
  readonly name: string
  /** Where the test stands: `policies/x.test.yaml:4:5`. */
  readonly place: string
  /** Why it failed; empty when it passed. */
  readonly faults: readonly string[]
}

/** Rules of a policy that no test matches. */
interface Unmatched {
  readonly policy: string
  /** All of them where the policy has no test; a policy without rules has none. */
  readonly rules: readonly string[]
}

interface SuiteResult {
  readonly passed: number
  readonly failed: number
  readonly mistakes: readonly string[]
  readonly tests: readonly TestResult[]
  readonly unmatched: readonly Unmatched[]
}

function printLines(shell: Shell, { passed, failed, mistakes, tests, unmatched }: SuiteResult): void {
  for (const mistake of mistakes) shell.complain(mistake)
  for (const { policy, name, place, faults } of tests) {
    shell.print(faults.length === 0 ? `ok      ${policy}: ${name}` : `FAILED  ${policy}: ${name} (${place})`)
    for (const fault of faults) shell.print(`        ${fault}`)
  }
  const tested = new Set(tests.map(({ policy }) => policy))
  for (const { policy, rules } of unmatched)
    shell.print(tested.has(policy) ? `no test matches  ${policy}: ${rules.join(', ')}` : `no tests         ${policy}`)
  shell.print(`${passed} passed, ${failed} failed`)
}

type SuiteOutcome = ReturnType<typeof runSuite>

function runSuite(suite: PolicySuite, { entries }: PreparedSet, settings: DecisionSettings) {
  const { policy } = suite
  const compiled = entries.get(policy)?.compiled
  const rulebook = compiled && soloRulebook(compiled, settings)
  const missing = `there is no policy ${policy}`
  const ran = suite.tests.map((test, index) => {
    const { faults, matched } =
      rulebook === undefined ? { faults: [missing], matched: [] } : runPolicyTest(rulebook, test)
    return { matched, result: { policy, name: test.name, place: suite.places[index]!, faults } }
  })
  return {
    policy,
    mistakes: rulebook === undefined ? [`${suite.place}: ${missing}`] : [],
    tests: ran.map(({ result }) => result),
    /** Rules that some test matched. */
    matched: ran.flatMap(({ matched }) => matched),
  }
}

/** Of policies with tests, and of those of the folder that have none. */
function listUnmatched({ entries }: PreparedSet, outcomes: readonly SuiteOutcome[]): readonly Unmatched[] {
  const byPolicy = Map.groupBy(outcomes, ({ policy }) => policy)
  return [...entries].flatMap(([policy, { source, compiled }]) => {
    const ofPolicy = byPolicy.get(policy)
    if (ofPolicy === undefined && source !== 'file') return []
    const matched = new Set(ofPolicy?.flatMap(outcome => outcome.matched))
    const names = [...compiled.rules, ...compiled.shadowRules].map(({ rule }) => rule.name)
    const rules = names.filter(name => !matched.has(name))
    return rules.length === 0 && ofPolicy !== undefined ? [] : [{ policy, rules }]
  })
}
