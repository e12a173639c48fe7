/** Threat T05 of SECURITY.md: no spelling of a path passes a rule that denies what a server makes of it. */
import fc from 'fast-check'
import t from 'tap'
import { readingsOf } from '../../../src/base/readings.ts'
import { parseTarget } from '../../../src/base/target.ts'
import { compilePolicySync } from '../../../src/policy/evaluation/compile.ts'
import { decideHead } from '../../../src/policy/evaluation/decide.ts'
import type { Decision } from '../../../src/policy/evaluation/decision.ts'
import { IndexBuilder } from '../../../src/policy/evaluation/rule.ts'
import type { RequestHead } from '../../../src/policy/request/input.ts'
import { naiveReadings } from '../../fixtures/naive-policy.ts'
import { pathDecoders } from '../../fixtures/path-decoders.ts'
import { described, policyOf, rulebookOf, rulebookOfCompiled } from '../../fixtures/rulebook.ts'
import { runs } from '../../fixtures/runs.ts'

type Condition = { readonly field: string; readonly operator: string; readonly value: string }

const word = fc.constantFrom('admin', 'a', 'v1', 'x.y', 'users')

/** A segment, some letters of it encoded: once, twice, by %u or as overlong UTF-8. */
const encodedWord = fc
  .tuple(word, fc.array(fc.nat(9), { maxLength: 6 }))
  .map(([text, ways]) => [...text].map((char, index) => spell(char, ways[index] ?? 0)).join(''))

function spell(char: string, way: number): string {
  const hex = char.charCodeAt(0).toString(16)
  if (way === 1) return `%${hex}`
  if (way === 2) return `%${hex.toUpperCase()}`
  if (way === 3) return `%25${hex}`
  if (way === 4) return `%u00${hex}`
  if (way === 5) return `%c1%${((char.charCodeAt(0) & 63) | 128).toString(16)}`
  return char
}

const separator = fc.constantFrom('/', '/', '/', '//', '%2f', '%2F', '%5c', '%252f', '/;/', '%c0%af')
const parameters = fc.constantFrom(
  '',
  '',
  '',
  ';',
  ';x',
  ';x=1',
  ';x%2fy',
  ';%61dmin',
  '%3bx',
  ';x=a;y',
  ';a%5c',
  '%20',
  '%c3%a9',
)
const dots = fc.constantFrom('..', '.', '%2e%2e', '..;', '.%2e;x', '%252e%252e')

/** Paths as an attacker builds them: words, separators and parameters, each in any spelling. */
const hostilePath = fc
  .array(
    fc.tuple(separator, fc.oneof({ weight: 12, arbitrary: encodedWord }, { weight: 1, arbitrary: dots }), parameters),
    { minLength: 1, maxLength: 5 },
  )
  .map(parts => `/${parts.map(part => part.join('')).join('')}`.replace(/^\/\//, '/'))

const denied: fc.Arbitrary<Condition> = fc
  .record({ words: fc.array(word, { minLength: 1, maxLength: 3 }), kind: fc.nat(8) })
  .map(({ words: [first = 'a', ...rest], kind }) => {
    const path = `/${[first, ...rest].join('/')}`
    const conditions: Condition[] = [
      { field: 'input.path', operator: 'eq', value: path },
      { field: 'input.path', operator: 'startsWith', value: path },
      { field: 'input.path', operator: 'endsWith', value: path },
      { field: 'input.path', operator: 'contains', value: path.slice(1) },
      { field: 'input.path', operator: 'pathMatches', value: `${path}/**` },
      { field: 'input.path', operator: 'pathMatches', value: `/*${path}` },
      { field: 'input.path', operator: 'pathMatches', value: `/**${path}/{id}` },
      { field: 'input.path', operator: 'matches', value: `^(/v1)?${path}(/|$)` },
      { field: 'input.url', operator: 'contains', value: path },
    ]
    return conditions[kind] as Condition
  })

const compileDeny = (condition: Condition) =>
  compilePolicySync(
    policyOf({ name: 'p', default: 'Allow', rules: [{ name: 'r', effect: 'Deny', conditions: [condition] }] }),
  )

const { head: plain } = described({ request: { url: 'https://a.example/' } })

function headOf(path: string, readings?: readonly string[]): RequestHead {
  return { ...plain, path, rawPath: path, url: `https://a.example${path}`, readings }
}

t.test('a path that some server maps to a denied one is denied, or no target at all', async t => {
  let refused = 0
  let mapped = 0
  fc.assert(
    fc.property(hostilePath, denied, (path, condition) => {
      const target = parseTarget(`https://a.example${path}`)
      if (typeof target === 'string') {
        refused++
        return
      }
      const compiled = compileDeny(condition)
      const index = new IndexBuilder()
      index.add(compiled.rules[0]!, 0)
      const linear = rulebookOfCompiled(compiled)
      const indexed = rulebookOfCompiled({ ...compiled, index: index.finish(0) })
      const head = headOf(target.path, target.readings)
      for (const [server, decode] of Object.entries(pathDecoders)) {
        const seen = decode(path)
        if (seen === undefined || (decideHead(linear, headOf(seen)) as Decision).decision !== 'Deny') continue
        mapped++
        for (const rulebook of [linear, indexed]) {
          if ((decideHead(rulebook, head) as Decision).decision === 'Deny') continue
          throw new Error(`${server} reads ${path} as ${seen}, which ${JSON.stringify(condition)} denies`)
        }
      }
    }),
    { numRuns: runs(5_000) },
  )
  t.ok(refused > runs(100), `${refused} paths were refused`)
  t.ok(mapped > runs(500), `${mapped} times a server saw a denied path`)
})

t.test('a path without odd spellings has one reading', async t => {
  const piece = fc.stringMatching(/^(?:[A-Za-z0-9_~!$&'()*+,=:@-]|%20|%c3%a9|%2B|%25|%3f){1,12}$/)
  const path = fc.array(piece, { maxLength: 5 }).map(pieces => `/${pieces.join('/')}`)
  fc.assert(
    fc.property(path, text => {
      if (/%25[0-9a-f]{2}/i.test(text)) return
      if (readingsOf(text) !== undefined) throw new Error(text)
    }),
    { numRuns: runs(5_000) },
  )
  t.pass('holds')
})

t.test('the readings are those of the plain model, the literal one first', async t => {
  for (const path of [
    '/a',
    '/%61',
    '/a;x',
    '/a;x%2fb',
    '/a%3bx/b',
    '//a',
    '/a%2fb//c',
    '/%2561',
    '/a%20b',
    '/;/a',
    '/a%5Cb',
  ]) {
    const readings = readingsOf(path) ?? [path]
    t.equal(readings[0], path)
    t.strictSame([...readings].sort(), [...naiveReadings(path)].sort(), path)
  }
  t.strictSame(readingsOf('/admin;x%2fy'), ['/admin;x%2fy', '/admin;x/y', '/admin', '/admin/y'])
})

t.test('a path in which some server finds dot segments is not a target', async t => {
  const paths = [
    '/x/..%2fadmin',
    '/..;/a',
    '/a/%2e%2e;x/b',
    '/a/.;/b',
    '/a%2f./b',
    '/a%5c..%5cb',
    '/a/%252e%252e/b',
    '/a/..%3bx/b',
  ]
  for (const path of [...paths, '/a/%c0%ae%c0%ae/b', '/a/%u002e./b'])
    t.match(parseTarget(`https://a.example${path}`), /dot segments/, path)
  for (const path of ['/a/...', '/a/..b/c', '/a/%20./b', '/a..%2fb'])
    t.type(parseTarget(`https://a.example${path}`), 'object', path)
  t.match(readingsOf(`/%${'25'.repeat(20)}61;x//%2f`), /too many ways/)
})

const is = (operator: string, value: string, field = 'input.path') => ({ field, operator, value })

t.test('where the readings differ, Deny and Hitl apply and Allow does not', async t => {
  const decide = (effect: string, condition: object, path: string, rest: object = {}) => {
    const other = effect === 'Allow' ? 'Deny' : 'Allow'
    const document = { name: 'p', default: other, rules: [{ name: 'r', effect, conditions: [condition] }], ...rest }
    return decideHead(
      rulebookOf(document),
      described({ request: { url: `https://a.example${path}` } }).head,
    ) as Decision
  }
  for (const path of ['/%61dmin', '/admin;x', '//admin', '/%5cadmin', '/admin%2f..b', '/%2561dmin']) {
    t.match(
      decide('Deny', is('pathMatches', '/admin/**'), path),
      { decision: 'Deny', rule: 'r', unreadable: ['input.path'] },
      path,
    )
    t.match(decide('Hitl', is('pathMatches', '/admin/**'), path), { decision: 'Hitl' }, path)
    t.match(decide('Allow', is('pathMatches', '/admin/**'), path), { decision: 'Deny', source: 'default' }, path)
    t.match(decide('Deny', is('notPathMatches', '/public/**'), path), { decision: 'Deny' }, path)
    t.match(
      decide('Deny', is('pathMatches', '/admin/**'), path, { onUnreadable: 'noMatch' }),
      { decision: 'Allow' },
      path,
    )
  }
  t.match(decide('Allow', is('startsWith', '/files/'), '/files/a%2fb;c'), { decision: 'Allow' }, 'all readings agree')
  t.match(decide('Allow', is('eq', '/a%20b'), '/a%20b'), { decision: 'Allow' }, 'an escape that is needed')
  t.match(
    decide('Allow', is('eq', '/p/g%2Fn', 'input.rawPath'), '/p/g%2Fn'),
    { decision: 'Allow' },
    'the spelling itself',
  )
  t.match(decide('Deny', is('eq', 'admin', 'input.pathSegments[0]'), '/%61dmin%2fx'), { decision: 'Deny' })
  t.match(decide('Deny', is('contains', '/admin?', 'input.url'), '/%61dmin?q=1'), { decision: 'Deny' })
  t.match(decide('Deny', is('contains', 'q=1', 'input.url'), '/%61dmin?q=1'), { decision: 'Deny', unreadable: [] })
  t.match(decide('Deny', is('eq', '/admin'), '/%61dmin'), { reason: /servers read this path in different ways/ })
})
