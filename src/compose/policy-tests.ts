import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseYaml, placesIn } from '../config/yaml.ts'
import { createChecks } from '../management/check.ts'
import { openApi } from '../management/openapi.ts'
import type { RequestDescription } from '../policy/describe.ts'
import { explainDescription } from '../policy/explain.ts'
import type { Rulebook } from '../policy/rulebook.ts'

/** One test of a policy: a described request, and what is to come of it (policy language, section 10). */
export interface PolicyTest extends RequestDescription {
  readonly name: string
  /** What is to be decided; what is left out may be anything. */
  readonly expect: {
    /** null: the head alone does not settle it (`phase: head`). */
    readonly decision: 'Allow' | 'Deny' | 'Hitl' | null
    readonly rule?: string | null
    readonly phase?: 'head' | 'body'
    readonly source?: string
  }
}

/** The tests of one policy, from one file. */
export interface PolicySuite {
  readonly policy: string
  readonly tests: readonly PolicyTest[]
  /** Where a part of the file stands: `policies/x.test.yaml:8:5`. */
  readonly where: (path: string) => string
}

export interface PolicySuites {
  readonly suites: readonly PolicySuite[]
  /** A line for each mistake in the files. */
  readonly lines: readonly string[]
}

/** A test file is a list of what `POST /policies/{name}/explain` takes, each with a name and an expectation. */
function fileSchema() {
  const { ExplainRequest } = openApi.components.schemas
  const text = { type: 'string' }
  const expect = {
    type: 'object',
    properties: {
      decision: { enum: ['Allow', 'Deny', 'Hitl', null] },
      rule: { type: ['string', 'null'] },
      phase: { enum: ['head', 'body'] },
      source: text,
    },
    required: ['decision'],
    additionalProperties: false,
  }
  const test = {
    type: 'object',
    properties: { ...ExplainRequest.properties, name: text, expect },
    required: [...ExplainRequest.required, 'name', 'expect'],
    additionalProperties: false,
  }
  const properties = { policy: text, tests: { type: 'array', minItems: 1, items: test } }
  return { type: 'object', properties, required: ['policy', 'tests'], additionalProperties: false }
}

let checkFile: ReturnType<ReturnType<typeof createChecks>> | undefined

/** Reads every `*.test.yaml` of a directory. One that is not there holds none. */
export async function readPolicySuites(directory: string): Promise<PolicySuites> {
  const all = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const names = all.filter(name => /^[^.].*\.test\.ya?ml$/.test(name)).sort()
  const suites: PolicySuite[] = []
  const lines: string[] = []
  for (const name of names) {
    const path = join(directory, name)
    const read = readSuite(path, await readFile(path, 'utf8'))
    if ('tests' in read) suites.push(read)
    else lines.push(...read)
  }
  return { suites, lines }
}

function readSuite(file: string, text: string): PolicySuite | readonly string[] {
  const yaml = parseYaml(text)
  if ('problems' in yaml) {
    return yaml.problems.map(({ line, column, message }) => `${file}:${line}:${column}: ${message} (E_YAML)`)
  }
  const where = placesIn(file, yaml)
  checkFile ??= createChecks({ policyTests: fileSchema() })('/policyTests')
  const errors = checkFile(yaml.value)
  if (errors.length > 0) return errors.map(({ field, message }) => `${where(field)}: ${field}: ${message} (E_TEST)`)
  return { ...(yaml.value as Pick<PolicySuite, 'policy' | 'tests'>), where }
}

export interface TestOutcome {
  /** What is not as expected, a line each; empty when the test passed. */
  readonly faults: readonly string[]
  /** Names of the rules of the policy that match the request. */
  readonly matched: readonly string[]
}

/** @param now taken when the test has no time, milliseconds since the epoch */
export function runPolicyTest(rulebook: Rulebook, test: PolicyTest, now: number): TestOutcome {
  const explained = explainDescription(rulebook, test, now)
  if ('problem' in explained) return { faults: [explained.problem], matched: [] }
  const { result, rules } = explained
  const got = result as Readonly<Record<string, unknown>>
  const faults = Object.entries(test.expect)
    .filter(([key, wanted]) => (got[key] ?? null) !== wanted)
    .map(([key, wanted]) => `${key}: expected ${wanted}, was ${got[key] ?? null}`)
  if (faults.length > 0 && 'reason' in result) faults.push(`the reason: ${result.reason}`)
  return { faults, matched: rules.filter(rule => rule.matches).map(({ rule }) => rule) }
}

/**
 * Runs every test of a directory.
 *
 * @param rulebookOf what applies to an agent with the policy of that name; undefined when there is none
 * @returns a line for each mistake in the files and each test that fails
 */
export async function failingPolicyTests(
  directory: string,
  rulebookOf: (policy: string) => Rulebook | undefined,
  now: number,
): Promise<readonly string[]> {
  const { suites, lines } = await readPolicySuites(directory)
  const failed = suites.flatMap(({ policy, tests, where }) => {
    const rulebook = rulebookOf(policy)
    if (rulebook === undefined) return [`${where('policy')}: there is no policy ${policy} (E_TEST)`]
    return tests.flatMap((test, index) => {
      const { faults } = runPolicyTest(rulebook, test, now)
      return faults.length === 0 ? [] : [`${where(`tests[${index}]`)}: ${test.name}: ${faults.join(', ')} (E_TEST)`]
    })
  })
  return [...lines, ...failed]
}
