import { resolve } from 'node:path'
import { systemClock } from '../clock.ts'
import { decisionSettings, languageOf, soloRulebook } from '../compose/language.ts'
import { type PolicySuite, readPolicySuites, runPolicyTest } from '../compose/policy-tests.ts'
import { type PreparedSet, prepareSet } from '../policies/entry.ts'
import { readFixedPolicies } from '../policies/open.ts'
import type { DecisionSettings } from '../policy/evaluation/rulebook.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway policy test [DIR] [--coverage] [--config FILE]

Runs the tests of policies: the files *.test.yaml of DIR (Policy:Directory if absent), against the policies in DIR
and in the configuration file. Exit code 0 when all of them pass, else 1.

  --coverage     also list the rules that no test matches; such a rule makes the exit code 1

${configHelp}

A test file:

  policy: support-agent
  tests:
    - name: a large refund needs a person
      request: { method: POST, url: https://api.shop.example/v1/refunds/1, body: { amount: 250 } }
      agent: { trustScore: 0.6 }
      expect: { decision: Hitl, rule: the-rest-needs-a-person }

A test without time runs on Monday, 2026-01-05, at 12:00 UTC.`

const options = { ...configOption, coverage: { type: 'boolean' } } as const

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, options, 1)
  const { config, baseDirectory } = readConfiguration(shell, values.config)
  const directory = positionals[0] ?? resolve(baseDirectory, config.Policy.Directory)
  const fixed = await readFixedPolicies({ directory, inline: config.Policies, clock: systemClock })
  const policies = await prepareSet(languageOf(config), fixed.inputs)
  const { suites, lines } = await readPolicySuites(directory)
  const mistakes = [...fixed.lines, ...policies.lines, ...lines]
  if (suites.length === 0 && mistakes.length === 0) mistakes.push(`${directory}: there is no *.test.yaml here`)
  for (const line of mistakes) shell.complain(line)
  const tally: Tally = { passed: 0, failed: 0, matched: new Map() }
  for (const suite of suites) runSuite(shell, suite, { policies, settings: decisionSettings(config), tally })
  const unmatched = values.coverage === true ? listUnmatched(shell, policies, tally) : 0
  shell.print(`${tally.passed} passed, ${tally.failed} failed`)
  return mistakes.length + tally.failed + unmatched === 0 ? 0 : 1
}

interface Tally {
  passed: number
  failed: number
  /** Rules that some test matched, by policy. */
  readonly matched: Map<string, Set<string>>
}

interface Ground {
  readonly policies: PreparedSet
  readonly settings: DecisionSettings
  readonly tally: Tally
}

function runSuite(shell: Shell, suite: PolicySuite, { policies, settings, tally }: Ground): void {
  const compiled = policies.entries.get(suite.policy)?.compiled
  if (compiled === undefined) {
    tally.failed += suite.tests.length
    shell.complain(`${suite.place}: there is no policy ${suite.policy}`)
    return
  }
  const seen = tally.matched.get(suite.policy) ?? new Set()
  tally.matched.set(suite.policy, seen)
  const rulebook = soloRulebook(compiled, settings)
  for (const [index, test] of suite.tests.entries()) {
    const { faults, matched } = runPolicyTest(rulebook, test)
    for (const rule of matched) seen.add(rule)
    tally[faults.length === 0 ? 'passed' : 'failed']++
    if (faults.length === 0) shell.print(`ok      ${suite.policy}: ${test.name}`)
    else shell.print(`FAILED  ${suite.policy}: ${test.name} (${suite.places[index]})`)
    for (const fault of faults) shell.print(`        ${fault}`)
  }
}

/** Names the rules of the tested policies that no test matches; how many there are. */
function listUnmatched(shell: Shell, { entries }: PreparedSet, { matched }: Tally): number {
  let count = 0
  for (const [name, seen] of matched) {
    const compiled = entries.get(name)?.compiled
    const rules = [...(compiled?.rules ?? []), ...(compiled?.shadowRules ?? [])].map(({ rule }) => rule.name)
    const unmatched = rules.filter(rule => !seen.has(rule))
    count += unmatched.length
    if (unmatched.length > 0) shell.print(`no test matches  ${name}: ${unmatched.join(', ')}`)
  }
  return count
}
