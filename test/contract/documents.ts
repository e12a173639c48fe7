import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { refusalKinds } from '../../src/base/refusal-kinds.ts'
import { runCommand } from '../../src/cli/commands.ts'
import { formatProblem } from '../../src/config/given.ts'
import { loadConfig } from '../../src/config/load.ts'
import { parseYaml } from '../../src/config/yaml.ts'
import { decisionSettings, soloRulebook } from '../../src/policies/language.ts'
import { type PolicyTest, runPolicyTest } from '../../src/policies/policy-tests.ts'
import { compilePolicySync } from '../../src/policy/evaluation/compile.ts'
import type { Policy } from '../../src/policy/language/model.ts'
import { parsePolicy } from '../../src/policy/language/parse.ts'
import { lintPolicy } from '../../src/policy/lint/lint.ts'
import { cookbookPage, cookbookText } from '../fixtures/cookbook.ts'
import { commandMarks, commandTests } from '../fixtures/page-commands.ts'
import { decision, rulebookOf } from '../fixtures/rulebook.ts'
import { fakeShell } from '../fixtures/shell.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const docs = readdirSync(join(root, 'docs')).filter(name => name.endsWith('.md'))
const names = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  'bench/README.md',
  ...docs.map(name => `docs/${name}`),
]
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

/** Half of the examples of docs/warnings.md are wrong on purpose: test/contract/warnings.ts has them. */
const right = [...pages].filter(([name]) => name !== 'docs/warnings.md')

const examples: readonly Example[] = right.flatMap(([name, text]) =>
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
    if ('policy' in parsed) t.strictSame(lintPolicy(parsed.policy).warnings, [], parsed.policy.name)
  }
  t.ok(found.length >= 5)
})

t.test('docs/cookbook.md shows every policy of the cookbook', async t => {
  t.equal(readFileSync(cookbookPage, 'utf8'), cookbookText(), 'Rewrite it with: node test/fixtures/cookbook.ts')
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

const refunds = 'https://api.shop.example/v1/refunds'
const good = { amount: 25, currency: 'EUR' }

/** Requests that are nearly the one that the first policy allows. */
const nearMisses: readonly (readonly [title: string, request: object, decision?: string])[] = [
  ['no amount', { body: { currency: 'EUR' } }],
  ['an amount above the limit', { body: { ...good, amount: 101 } }],
  ['an amount below zero', { body: { ...good, amount: -25 } }],
  ['an amount as text', { body: { ...good, amount: '25' } }],
  ['a list of amounts', { body: { ...good, amount: [25, 5_000] } }],
  ['a list of refunds', { body: [good, { ...good, amount: 5_000 }] }],
  ['an amount inside another one', { body: { ...good, amount: { value: 5_000 } } }],
  ['no currency', { body: { amount: 25 } }],
  ['another currency', { body: { ...good, currency: 'KWD' } }],
  ['a list of currencies', { body: { ...good, currency: ['EUR', 'KWD'] } }],
  ['an amount twice', { body: '{"amount":25,"currency":"EUR","amount":5000}' }],
  ['an amount in capitals too', { body: { ...good, Amount: 5_000 } }],
  ['a form', { body: 'amount=25&currency=EUR', headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
  ['no body', {}],
  ['a compressed body', { body: good, headers: { 'content-encoding': 'gzip', 'content-type': 'application/json' } }],
  ['PUT', { method: 'PUT', body: good }],
  ['PATCH', { method: 'PATCH', body: good }],
  ['DELETE', { method: 'DELETE' }],
  ['another path', { url: `${refunds}-all`, body: good }],
  ['a path below', { url: `${refunds}/1`, body: good }],
  ['another spelling of the path', { url: 'https://api.shop.example/v1//refunds', body: good }],
  ['an amount in the query', { url: `${refunds}?amount=5000`, body: good }],
  ['plain http', { url: refunds.replace('https', 'http'), body: good }, 'Deny'],
  ['another port', { url: refunds.replace('example/', 'example:8443/'), body: good }, 'Deny'],
  ['another host', { url: refunds.replace('api.', 'api2.'), body: good }, 'Deny'],
]

t.test('the first policy allows small refunds, and none of the requests that are nearly one', async t => {
  const defaults = loadConfig({ file: undefined, env: {} })
  if ('problems' in defaults) throw new Error('the defaults are valid')
  const shown = examples.filter(({ block }) => block.startsWith('name: support-agent\n'))
  t.strictSame(shown.map(({ name }) => name).sort(), ['README.md', 'docs/policies.md'])
  for (const { value, name } of shown) {
    const parsed = parsePolicy(value)
    if ('problems' in parsed) throw new Error(`${name}: ${parsed.problems[0]?.message}`)
    const rulebook = soloRulebook(compilePolicySync(parsed.policy), decisionSettings(defaults.config))
    const check = (title: string, request: object, decision: string) => {
      const usual = { method: 'POST', url: refunds, headers: { 'content-type': 'application/json' } }
      const { faults } = runPolicyTest(rulebook, {
        name: title,
        request: { ...usual, ...request },
        expect: { decision },
      } as PolicyTest)
      t.strictSame(faults, [], `${name}: ${title}`)
    }
    check('a small refund', { body: good }, 'Allow')
    check('a refund of 100', { body: { ...good, amount: 100 } }, 'Allow')
    check('reading', { method: 'GET', url: `${refunds}/1` }, 'Allow')
    for (const [title, request, decision = 'Hitl'] of nearMisses) check(title, request, decision)
  }
})

t.test('the conditions in the tables of the guide are valid', async t => {
  const shown = [...(pages.get('docs/policies.md') ?? '').matchAll(/`(\{ field: [^`]*\})`/g)].map(([, one = '']) => one)
  const rules = shown.map((one, at) => `  - { name: r${at}, effect: Deny, conditions: [${one}] }`).join('\n')
  const read = parseYaml(`name: p\nrules:\n${rules}`)
  const parsed = parsePolicy('value' in read ? read.value : read.problems)
  t.strictSame('problems' in parsed ? parsed.problems : [], [])
  t.ok(shown.length > 15, `${shown.length} conditions`)
})

t.test('the complete rule of the guide allows what it is for, and nothing that is nearly so', async t => {
  const shown = examples.find(({ block }) => block.startsWith('name: notes\n'))
  const parsed = parsePolicy(shown?.value)
  if ('problems' in parsed) throw new Error(`${parsed.problems[0]?.message}`)
  t.strictSame(lintPolicy(parsed.policy).warnings, [])
  const rulebook = rulebookOf(shown?.value)
  const note = { text: 'hi', kind: 'internal' }
  const url = 'https://api.shop.example/v1/orders/7/notes'
  const effectOf = (over: object) =>
    decision(rulebook, { request: { method: 'POST', url, body: note, ...over } }).decision
  t.equal(effectOf({}), 'Allow')
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const misses = [
    { method: 'PUT' },
    { url: url.replace('https', 'http') },
    { url: url.replace('/7/', '/export/') },
    { url: `${url}?force=true` },
    { headers: { 'X-HTTP-Method-Override': 'DELETE' } },
    { headers: form, body: 'text=hi&kind=internal' },
    { body: { ...note, refund: 1 } },
    { body: { ...note, Text: 'ho' } },
    { body: { ...note, text: ['hi'] } },
    { body: { ...note, kind: ['internal'] } },
    { body: { kind: 'internal' } },
    { body: [note] },
  ]
  for (const miss of misses) t.equal(effectOf(miss), 'Deny', JSON.stringify(miss))
})

t.test('every other example in YAML is a valid piece of gateway.yaml, but the one for Prometheus', async t => {
  const others = examples.filter(example => policyOf(example) === undefined)
  const pieces = others.filter(
    ({ value }) => isMap(value) && !('tests' in value) && !('scrape_configs' in value) && !('rule_files' in value),
  )
  for (const { name, block } of pieces) {
    const loaded = loadConfig({ file: { path: name, text: block }, env: {} })
    t.strictSame('problems' in loaded ? loaded.problems.map(formatProblem) : [], [])
  }
  t.ok(pieces.length >= 2)
})

t.test('docs/refusals.md lists every refusal with its status', async t => {
  const page = pages.get('docs/refusals.md') ?? ''
  const rows = Array.from(page.matchAll(/^\| `(\w+)` \| (\d+) \| .+ \| .+ \|$/gm), ([, code, status]) => [code, status])
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

const commandBlocks = [...pages].flatMap(([page, content]) =>
  [...content.matchAll(/(?:<!-- ([^>]*) -->\n)?```sh\n([\s\S]*?)```/g)].map(([, mark, text = '']) => ({
    page,
    mark,
    text,
  })),
)

t.test('each block of commands is run by a test, or is on record with the reason why not', async t => {
  const used = new Set<string>()
  for (const { page, mark, text } of commandBlocks) {
    const begun = Object.entries(commandTests[page] ?? {}).find(([begin]) => text.trimStart().startsWith(begin))
    if (begun !== undefined) used.add(`${page} ${begun[0]}`)
    const by = (mark === undefined ? undefined : commandMarks[mark]) ?? begun?.[1]
    t.ok(
      by !== undefined && (by.startsWith('not run: ') || existsSync(join(root, by))),
      `${page}: ${text.slice(0, 70)}`,
    )
  }
  const listed = Object.entries(commandTests).flatMap(([page, all]) =>
    Object.keys(all).map(begin => `${page} ${begin}`),
  )
  t.strictSame([...used].sort(), listed.sort(), 'nothing is listed that no page has')
})

/** What blocks may hold, each kind read by a test here or in client-examples.ts; the others are shown alone. */
const languages = new Set(['sh', 'text', 'yaml', 'json', 'js', 'python', 'ini', 'nginx', 'sql'])
const looksLikeCommand =
  /^ *(?:\$ |(?:sudo|curl|npm|npx|node|agent-gateway|docker|docker-compose|kubectl|helm|systemctl|apt-get) \S)/m

t.test('commands stand in blocks of sh alone, which the tests above look for', async t => {
  for (const [page, text] of pages) {
    const fences = Array.from(text.matchAll(/^ *```(.*)$/gm), ([, language = '']) => language)
    t.strictSame(
      fences.filter((language, index) => (index % 2 === 0 ? !languages.has(language) : language !== '')),
      [],
      `${page}: a block has no known language, or is not closed`,
    )
    for (const block of blocksOf(text, 'text')) t.notMatch(block, looksLikeCommand, page)
  }
})

t.test('a mark stands for a test that looks for it', async t => {
  for (const [mark, file] of Object.entries(commandMarks))
    t.match(readFileSync(join(root, file), 'utf8'), mark.replace(/[ :].*/, ''), mark)
})

t.test('commands of the gateway have the options that pages give them', async t => {
  let count = 0
  for (const { page, text } of commandBlocks) {
    const lines = text
      .replaceAll('\\\n', ' ')
      .split('\n')
      .map(line => line.replace(/ #.*/, ''))
    for (const line of lines) {
      const [, words = ''] = /(?:^|\s)agent-gateway(?: --)? ((?:[a-z-]+ ?)+)/.exec(line) ?? []
      if (words === '') continue
      const own = line.replace(/ -- .*/, '').replace(/\|.*|>.*/, '')
      for (const [option] of own.matchAll(/(?<=\s)--[a-z][\w-]*/g)) {
        const [first = '', second = ''] = words.split(' ')
        const help = (await helpOf([first, second])) ?? (await helpOf([first]))
        t.ok(help?.includes(option), `${page}: ${first} ${second} ${option}`)
        count += 1
      }
    }
  }
  t.ok(count > 10, String(count))
})

async function helpOf(words: readonly string[]): Promise<string | undefined> {
  const shell = fakeShell([...words.filter(word => word !== ''), '--help'])
  return (await runCommand(shell)) === 0 ? shell.printed.join('\n') : undefined
}
