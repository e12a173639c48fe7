import { readFile } from 'node:fs/promises'
import { createChecks } from '../api/check.ts'
import { openApi } from '../api/openapi.ts'
import { parseYaml, placesIn } from '../config/yaml.ts'
import type { DecisionRecord } from '../policy/evaluation/decision.ts'
import { explainDescription } from '../policy/evaluation/explain.ts'
import { shownConditions } from '../policy/evaluation/reason.ts'
import type { Rulebook } from '../policy/evaluation/rulebook.ts'
import type { RequestDescription } from '../policy/request/describe.ts'
import { createFileCache, type FileCache } from './file-cache.ts'
import { isPolicyTestFile } from './files.ts'

/** One test of a policy: a described request and the expected decision (policy language, section 10). */
export interface PolicyTest extends RequestDescription {
  readonly name: string
  /** The expected decision; omitted members are not compared. */
  readonly expect: {
    /** null: the head alone is not enough (`phase: head`). */
    readonly decision: 'Allow' | 'Deny' | 'Hitl' | null
    readonly rule?: string | null
    readonly phase?: 'head' | 'body'
    readonly source?: string
  }
}

export interface PolicySuite {
  readonly policy: string
  readonly tests: readonly PolicyTest[]
  /** Where the policy is named: `policies/x.test.yaml:1:1`. */
  readonly place: string
  /** Where each test stands. */
  readonly places: readonly string[]
}

export interface PolicySuites {
  readonly suites: readonly PolicySuite[]
  /** A line for each mistake in the files. */
  readonly lines: readonly string[]
}

/** A test file is a list of what `POST /policies/{name}/explain` takes, each with a name and an expectation. */
export function suiteSchema() {
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

/** A file of tests, or a line for each mistake in it. */
type SuiteFile = PolicySuite | { readonly lines: readonly string[] }

/** The test files of a directory. One that is not there holds none. */
function suiteFiles(directory: string): FileCache<SuiteFile> {
  return createFileCache<SuiteFile>(directory, {
    isWanted: isPolicyTestFile,
    load: async path => readSuite(path, await readFile(path, 'utf8')),
    failed: (path, error) => ({ lines: [`${path}: cannot be read: ${error.message}`] }),
  })
}

async function readSuites(files: FileCache<SuiteFile>): Promise<PolicySuites> {
  const read = await files.read().catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return {
    suites: read.flatMap(file => ('tests' in file ? file : [])),
    lines: read.flatMap(file => ('lines' in file ? file.lines : [])),
  }
}

/** Reads every `*.test.yaml` of a directory. */
export function readPolicySuites(directory: string): Promise<PolicySuites> {
  return readSuites(suiteFiles(directory))
}

function readSuite(file: string, text: string): SuiteFile {
  const yaml = parseYaml(text)
  if ('problems' in yaml) {
    const lines = yaml.problems.map(({ line, column, message }) => `${file}:${line}:${column}: ${message} (E_YAML)`)
    return { lines }
  }
  const where = placesIn(file, yaml)
  checkFile ??= createChecks({ policyTests: suiteSchema() })('/policyTests')
  const errors = checkFile(yaml.value)
  if (errors.length > 0) {
    return { lines: errors.map(({ field, message }) => `${where(field)}: ${field}: ${message} (E_TEST)`) }
  }
  // The check above holds the file against the schema of a suite.
  const { policy, tests } = yaml.value as Pick<PolicySuite, 'policy' | 'tests'>
  const places = tests.map((_, index) => where(`tests[${index}]`))
  return { policy, tests, place: where('policy'), places }
}

export interface TestOutcome {
  /** A line for each difference; empty when the test passed. */
  readonly faults: readonly string[]
  /** Names of the rules of the policy that match the request. */
  readonly matched: readonly string[]
}

/** The time of tests that have none, a Monday noon in UTC: a test must not pass by day and fail by night. */
const testTime = Date.UTC(2026, 0, 5, 12)

export function runPolicyTest(rulebook: Rulebook, test: PolicyTest): TestOutcome {
  const explained = explainDescription(rulebook, test, testTime)
  if ('problem' in explained) return { faults: [explained.problem], matched: [] }
  const { result, rules, readings } = explained
  const got: Readonly<Record<string, unknown>> = { ...result }
  const faults = Object.entries(test.expect)
    .filter(([key, wanted]) => (got[key] ?? null) !== wanted)
    .map(([key, wanted]) => `${key}: expected ${wanted}, was ${got[key] ?? null}`)
  if (faults.length > 0 && 'reason' in result) faults.push(`the reason: ${result.reason}`, ...heldConditions(result))
  if (faults.length > 0 && readings !== undefined) faults.push(`servers read the path as ${readings.join(' or ')}`)
  return { faults, matched: rules.filter(rule => rule.matches).map(({ rule }) => rule) }
}

/** A line for each condition that held, at most those that a rule can have, where the reason does not name them all. */
function heldConditions({ matched }: DecisionRecord): readonly string[] {
  return matched.length > shownConditions ? matched.map(({ condition }) => `held: ${condition}`) : []
}

/** Tries policies out. Gives a line for each mistake in the test files and each test that fails. */
export type SelfTest = (rulebookOf: (policy: string) => Rulebook | undefined) => Promise<readonly string[]>

/** The tests of a directory. A test runs again when its file or its policy is another one. */
export function createSelfTest(directory: string): SelfTest {
  const files = suiteFiles(directory)
  const done = new WeakMap<PolicySuite, { readonly policy: unknown; readonly lines: readonly string[] }>()

  function linesOf(suite: PolicySuite, rulebook: Rulebook): readonly string[] {
    const before = done.get(suite)
    if (before !== undefined && before.policy === rulebook.policy) return before.lines
    const lines = suite.tests.flatMap((test, index) => {
      const { faults } = runPolicyTest(rulebook, test)
      return faults.length === 0 ? [] : [`${suite.places[index]}: ${test.name}: ${faults.join(', ')} (E_TEST)`]
    })
    done.set(suite, { policy: rulebook.policy, lines })
    return lines
  }

  return async rulebookOf => {
    const { suites, lines } = await readSuites(files)
    const failed = suites.flatMap(suite => {
      const rulebook = rulebookOf(suite.policy)
      if (rulebook === undefined) return [`${suite.place}: there is no policy ${suite.policy} (E_TEST)`]
      return linesOf(suite, rulebook)
    })
    return [...lines, ...failed]
  }
}
