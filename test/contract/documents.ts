import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { decisionSettings, soloRulebook } from '../../src/compose/language.ts'
import { type PolicyTest, runPolicyTest } from '../../src/compose/policy-tests.ts'
import { formatProblem } from '../../src/config/given.ts'
import { loadConfig } from '../../src/config/load.ts'
import { parseYaml } from '../../src/config/yaml.ts'
import { refusalKinds } from '../../src/errors.ts'
import { compilePolicySync } from '../../src/policy/evaluation/compile.ts'
import type { Policy } from '../../src/policy/language/model.ts'
import { parsePolicy } from '../../src/policy/language/parse.ts'
import { lintPolicy } from '../../src/policy/lint/lint.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const docs = readdirSync(join(root, 'docs')).filter(name => name.endsWith('.md'))
const names = ['README.md', 'SECURITY.md', 'CHANGELOG.md', 'bench/README.md', ...docs.map(name => `docs/${name}`)]
const pages = new Map(names.map(name => [name, readFileSync(join(root, name), 'utf8')]))

const withoutCode = (text: string) => text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '``')

/** The anchor that GitHub gives to a heading. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')

const anchors = (text: string) =>
  Array.from(text.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.+)$/gm), ([, heading = '']) => anchorOf(heading))

t.test('every link between the documents leads to a file and a heading that are there', async t => {
  let count = 0
  for (const [name, text] of pages) {
    for (const [, target = ''] of withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? name : normalize(join(dirname(name), path))
      if (!existsSync(join(root, file))) t.fail(`${name}: ${target} is not there`)
      else if (anchor !== undefined && !anchors(pages.get(file) ?? '').includes(anchor)) {
        t.fail(`${name}: ${target} has no such heading`)
      }
      count += 1
    }
  }
  t.ok(count > 100, `${count} links`)
})

t.test('every path of the repository that the documents name is there', async t => {
  const paths = [...pages].flatMap(([name, text]) =>
    Array.from(
      text.matchAll(/`((?:src|test|bench|deploy|policies)\/[\w./*-]*)`/g),
      ([, path = '']) => [name, path] as const,
    ),
  )
  const gone = paths.filter(([, path]) => globSync(path, { cwd: root }).length === 0)
  t.strictSame(gone, [])
  t.ok(paths.length > 50)
})

t.test('every page of docs/ can be reached from the README', async t => {
  for (const name of docs) t.ok(pages.get('README.md')?.includes(`(docs/${name})`), name)
})

/** The blocks of code in one language. */
function blocksOf(text: string, language: string): string[] {
  const fence = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm')
  return Array.from(text.matchAll(fence), ([, code = '']) => code)
}

t.test('every block of JSON is JSON', async t => {
  for (const [name, text] of pages) for (const block of blocksOf(text, 'json')) t.ok(JSON.parse(block), name)
})

/** YAML reads a bracket in a plain text of a flow map as a map or a list. */
t.test('patterns in examples and shipped policies stand in quotes', async t => {
  const shipped = globSync('policies/**/*.yaml', { cwd: root }).map(name => readFileSync(join(root, name), 'utf8'))
  const unquoted = /\b(?:value|field): [^"'[{\s][^,}\n]*[*{[]/
  for (const text of [...[...pages.values()].flatMap(page => blocksOf(page, 'yaml')), ...shipped]) {
    t.notMatch(text, unquoted, text.split('\n')[0] ?? '')
  }
})

interface Example {
  readonly name: string
  readonly block: string
  readonly value: unknown
}

const examples: readonly Example[] = [...pages].flatMap(([name, text]) =>
  blocksOf(text, 'yaml').map(block => {
    const yaml = parseYaml(block)
    return { name, block, value: 'problems' in yaml ? yaml.problems : yaml.value }
  }),
)

const isMap = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

/** A policy, or some of its rules. */
function policyOf({ value }: Example): unknown {
  if (Array.isArray(value)) return { name: 'example', rules: value }
  return isMap(value) && 'rules' in value ? value : undefined
}

const policies = new Map<string, Policy>()
for (const example of examples) {
  const document = policyOf(example)
  const parsed = document === undefined ? undefined : parsePolicy(document)
  if (parsed !== undefined && 'policy' in parsed) policies.set(parsed.policy.name, parsed.policy)
}

t.test('every example of a policy is valid, and nothing in it looks like a mistake', async t => {
  const found = examples.map(policyOf).filter(document => document !== undefined)
  for (const document of found) {
    const parsed = parsePolicy(document)
    t.strictSame('problems' in parsed ? parsed.problems : [], [])
    if ('policy' in parsed) t.strictSame(lintPolicy(parsed.policy), [], parsed.policy.name)
  }
  t.ok(found.length >= 5)
})

t.test('every example of a policy test passes', async t => {
  const defaults = loadConfig({ file: undefined, env: {} })
  if ('problems' in defaults) throw new Error('the defaults are valid')
  const settings = decisionSettings(defaults.config)
  const suites = examples.map(({ value }) => value).filter(value => isMap(value) && 'tests' in value)
  for (const suite of suites as { policy: string; tests: PolicyTest[] }[]) {
    const rulebook = soloRulebook(compilePolicySync(policies.get(suite.policy) as Policy), settings)
    for (const test of suite.tests) t.strictSame(runPolicyTest(rulebook, test).faults, [], test.name)
  }
  t.ok(suites.length > 0)
})

t.test('every other example in YAML is a valid piece of gateway.yaml, but the one for Prometheus', async t => {
  const others = examples.filter(example => policyOf(example) === undefined)
  const pieces = others.filter(({ value }) => isMap(value) && !('tests' in value) && !('scrape_configs' in value))
  for (const { name, block } of pieces) {
    const loaded = loadConfig({ file: { path: name, text: block }, env: {} })
    t.strictSame('problems' in loaded ? loaded.problems.map(formatProblem) : [], [])
  }
  t.ok(pieces.length >= 2)
})

t.test('docs/running.md lists every refusal with its status', async t => {
  const [, section = ''] = pages.get('docs/running.md')?.split('\n## Refusals\n') ?? []
  const rows = Array.from(section.matchAll(/^\| `(\w+)` \| (\d+) \| .+ \| .+ \|$/gm), ([, code, status]) => [
    code,
    status,
  ])
  const kinds = Object.entries(refusalKinds).map(([code, { status }]) => [code, String(status)])
  t.strictSame(rows.sort(), kinds.sort())
})

t.test('every setting that the documents name in full is there', async t => {
  const table = pages.get('docs/settings.md') ?? ''
  const sections = 'System|Security|Storage|Policy|Proxy|Egress|Risk|Trust|HumanInTheLoop|Logging|Telemetry'
  for (const [name, text] of pages) {
    for (const [, setting = ''] of text.matchAll(new RegExp(`\`((?:${sections})(?::[\\w-]+)+)`, 'g'))) {
      t.ok(table.includes(`\`${setting}\``) || table.includes(`\`${setting}:`), `${name}: ${setting}`)
    }
  }
})
