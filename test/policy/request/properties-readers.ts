/** Threat T24 of SECURITY.md: where readers of one text differ, the decision is never milder than for what one of them reads. */
import fc from 'fast-check'
import t from 'tap'
import type { Rulebook } from '../../../src/policy/evaluation/rulebook.ts'
import { decideInFull } from '../../fixtures/decide.ts'
import { formReaders } from '../../fixtures/form-readers.ts'
import { jsonReaders, type Member, Refused, readPath, type Tree, writeTree } from '../../fixtures/json-readers.ts'
import { described, rulebookOf } from '../../fixtures/rulebook.ts'
import { runs } from '../../fixtures/runs.ts'

/** Members that a program reads, a field on one of them, and names and values that a body may have. */
interface Shape {
  readonly paths: readonly (readonly string[])[]
  readonly fields: readonly string[]
  readonly names: readonly string[]
  readonly values: readonly Tree[]
}

const amounts = [1, 5, 500, '500', null, 'red', true]
const document = (text: string) => `${text} { a }`
const shapes: readonly Shape[] = [
  { paths: [['amount']], fields: ['input.body.amount'], names: ['amount'], values: amounts },
  {
    paths: [['order', 'sum']],
    fields: ['input.body.order.sum', 'input.body["order"]["sum"]'],
    names: ['order', 'sum'],
    values: amounts,
  },
  {
    paths: [['items', '[*]', 'sum']],
    fields: ['input.body.items[*].sum'],
    names: ['items', 'sum'],
    values: amounts,
  },
  {
    paths: [['jsonrpc'], ['method'], ['params', 'name'], ['params', 'arguments', 'sum'], ['params', 'uri']],
    fields: ['mcp.method', 'mcp.tool', 'mcp.arguments.sum', 'mcp.resource'],
    names: ['jsonrpc', 'method', 'params', 'name', 'arguments', 'sum', 'uri'],
    values: ['2.0', 'tools/call', 'resources/read', 'red', 'blue', 500],
  },
  {
    paths: [['model'], ['stream'], ['max_tokens']],
    fields: ['llm.model', 'llm.stream', 'llm.maxTokens'],
    names: ['model', 'stream', 'max_tokens'],
    values: ['red', 'blue', 500, 5, true, false],
  },
  {
    paths: [['query'], ['operationName']],
    fields: ['graphql.operation', 'graphql.name'],
    names: ['query', 'operationName'],
    values: [document('query red'), document('mutation blue'), document('mutation'), 'red', 'blue'],
  },
]

/** Spellings of a name that some reader takes for it, and others that none does. */
function spellings(name: string): string[] {
  const upper = name.toUpperCase()
  const title = `${upper[0]}${name.slice(1)}`
  const odd = name.replace('s', '\u017f').replace('k', '\u212a').replace('i', '\u0131')
  return [name, name, name, upper, title, odd, `${name}s`, ` ${name}`, name.replace('i', '\u0130')]
}

/** A tree of the members of a shape, in any spelling, some of them twice. */
function treeOf({ paths, names, values }: Shape): fc.Arbitrary<Tree> {
  const leaf = fc.constantFrom<Tree>(...values)
  const name = fc.constantFrom(...names.flatMap(spellings))
  const children = (prefix: readonly string[]): string[] => [
    ...new Set(
      paths.filter(path => prefix.every((part, at) => path[at] === part)).flatMap(path => path[prefix.length] ?? []),
    ),
  ]
  const at = (prefix: readonly string[]): fc.Arbitrary<Tree> => {
    const keys = children(prefix)
    if (keys.length === 0) return leaf
    if (keys[0] === '[*]') return fc.array(at([...prefix, '[*]']), { maxLength: 3 })
    const known = keys.map(key =>
      fc.tuple(fc.constantFrom(...spellings(key)), fc.oneof({ weight: 6, arbitrary: at([...prefix, key]) }, leaf)),
    )
    const member: fc.Arbitrary<Member> = fc.oneof({ weight: 3, arbitrary: fc.oneof(...known) }, fc.tuple(name, leaf))
    // A member for each name, so that most bodies are whole, and some more.
    return fc
      .tuple(fc.tuple(...known), fc.array(member, { maxLength: 2 }))
      .map(([own, more]) => ({ members: [...own, ...more] }))
  }
  return at([])
}

const operators: readonly (readonly [operator: string, value: string])[] = [
  ['eq', 'red'],
  ['ne', 'red'],
  ['eq', '500'],
  ['gt', '100'],
  ['lte', '100'],
  ['in', 'red,tools/call,mutation'],
  ['notIn', 'blue,query'],
  ['exists', 'true'],
  ['exists', 'false'],
]
const textual = new Set(['mcp.method', 'graphql.operation', 'llm.stream'])

function conditionOf(field: string, [operator, value]: readonly [string, string]): Condition | undefined {
  const isOrdering = operator === 'gt' || operator === 'lte'
  if (isOrdering && textual.has(field)) return undefined
  if (field === 'llm.stream' && value !== 'true' && value !== 'false') return { field, operator: 'eq', value: 'true' }
  if (field === 'llm.maxTokens' && !/^\d|^(true|false)$/.test(value)) return { field, operator: 'gt', value: '100' }
  return { field, operator, value }
}

const strictness = { Allow: 0, Hitl: 1, Deny: 2 }

interface Body {
  readonly type: string
  readonly text: string
}

const json = (text: string): Body => ({ type: 'application/json', text })
const form = (text: string): Body => ({ type: 'application/x-www-form-urlencoded', text })

function decide(rulebook: Rulebook, { type, text }: Body): 'Allow' | 'Deny' | 'Hitl' {
  const { head, body } = described({
    request: { method: 'POST', url: 'https://a.example/', headers: { 'content-type': type }, body: text },
  })
  return decideInFull(rulebook, head, body).decision
}

interface Condition {
  readonly field: string
  readonly operator: string
  readonly value: string
}

/** A Deny and a Hitl rule that one of several values satisfies, and an Allow rule that demands all of them. */
function rulebooksOf(condition: Condition): readonly Rulebook[] {
  const isNegated = condition.operator === 'ne' || condition.operator === 'notIn' || condition.value === 'false'
  const rule = (effect: string, strict: 'any' | 'all') => {
    const quantifier = isNegated ? (strict === 'any' ? 'all' : 'any') : strict
    return { name: 'r', effect, conditions: [{ ...condition, quantifier }] }
  }
  return [
    rulebookOf({ name: 'p', default: 'Allow', rules: [rule('Deny', 'any')] }),
    rulebookOf({ name: 'p', default: 'Allow', rules: [rule('Hitl', 'any')] }),
    rulebookOf({ name: 'p', default: 'Deny', rules: [rule('Allow', 'all')] }),
  ]
}

type Decision = ReturnType<typeof decide>

/** Throws when one of the decisions is milder than it must be. Returns how many had to be strict. */
function compare(found: readonly Decision[], wanted: readonly Decision[], what: string): number {
  for (const [at, each] of wanted.entries()) {
    if (strictness[found[at]!] < strictness[each]) throw new Error(`${each}, not ${found[at]}: ${what}`)
  }
  return wanted.filter(each => each !== 'Allow').length
}

/** A body that has nothing but what a program sees, written plainly. */
function canonical(paths: Shape['paths'], seen: readonly unknown[]): unknown {
  const body = {}
  for (const [index, path] of paths.entries()) if (seen[index] !== undefined) put(body, path, seen[index])
  return body
}

function put(target: Record<string, unknown>, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) target[name] = value
  else if (rest[0] === '[*]') {
    target[name] = (value as unknown[]).map(each => {
      const element = {}
      if (each !== undefined) put(element, rest.slice(1), each)
      return element
    })
  } else {
    target[name] ??= {}
    put(target[name] as Record<string, unknown>, rest, value)
  }
}

function readAll(tree: Tree, paths: Shape['paths'], reader: (typeof jsonReaders)[string]): unknown[] | undefined {
  try {
    return paths.map(path => readPath(tree, path, reader))
  } catch (error) {
    if (error instanceof Refused) return undefined
    throw error
  }
}

for (const shape of shapes) {
  t.test(`a decision on ${shape.fields[0]} is not milder than for any reader of the JSON`, async t => {
    let strict = 0
    let allowed = 0
    fc.assert(
      fc.property(
        treeOf(shape),
        fc.constantFrom(...shape.fields),
        fc.constantFrom(...operators),
        fc.nat(3),
        (tree, field, operation, escaped) => {
          const condition = conditionOf(field, operation)
          if (condition === undefined) return
          const rulebooks = rulebooksOf(condition)
          const decideAll = (body: Body) => rulebooks.map(rulebook => decide(rulebook, body))
          const sent = json(writeTree(tree, name => escaped === 0 && name.length % 2 === 0))
          const found = decideAll(sent)
          if (found[2] === 'Allow') allowed++
          for (const [name, reader] of Object.entries(jsonReaders)) {
            const seen = readAll(tree, shape.paths, reader)
            if (seen === undefined) continue
            const body = json(JSON.stringify(canonical(shape.paths, seen)))
            const what = `${name} reads ${sent.text} as ${body.text}, ${JSON.stringify(condition)}`
            strict += compare(found, decideAll(body), what)
          }
        },
      ),
      { numRuns: runs(3_000, 375) },
    )
    t.ok(strict > runs(1_000), `${strict} times a reader saw what is not allowed`)
    t.ok(allowed > runs(20, -1), `${allowed} bodies were allowed by what they say`)
  })
}

/** What a program may want, and names that some framework takes for one of them. */
const forms: readonly { readonly wanted: readonly string[]; readonly names: readonly string[] }[] = [
  {
    wanted: ['amount'],
    names: [
      ...['amount', 'amount', 'amount', 'Amount', 'AMOUNT', 'amo%75nt', 'amount[]', 'amount[0]', 'amount[x', '+amount'],
      ...['amount%00x', 'am%u006funt', 'amount]', '[amount]', 'amount.x', 'amounts', 'note'],
    ],
  },
  {
    wanted: ['order_sum', 'order', 'order[sum]', 'order.sum'],
    names: [
      ...['order_sum', 'order.sum', 'order+sum', 'order[sum]', 'Order[Sum]', 'order%5Bsum%5D', 'order[sum]x'],
      ...['order[sum', 'order', 'order[]', 'order[tax]', 'note'],
    ],
  },
  {
    wanted: ['items[0][sum]', 'items[1][sum]'],
    names: ['items[0][sum]', 'items[][sum]', 'items[1][sum]', 'items[2][sum]', 'items.0.sum', 'items', 'note'],
  },
]
const formValues = ['5', '500', '7', 'red', '', '%zz', '%ff', '%u0035']
const formText = ({ names }: (typeof forms)[number]) => {
  const part = fc
    .tuple(fc.constantFrom(...names), fc.constantFrom('=', '=', '=', ''), fc.constantFrom(...formValues))
    .map(([name, equals, value]) => `${name}${equals}${equals === '' ? '' : value}`)
  const separator = fc.constantFrom('&', '&', '&', '& ', ';', '&&')
  return fc
    .array(fc.tuple(part, separator), { minLength: 1, maxLength: 4 })
    .map(parts => parts.map(([text, end], at) => (at < parts.length - 1 ? text + end : text)).join(''))
}
/** Now and then more parameters than PHP and Express take. */
const formCase = fc.constantFrom(...forms).chain(shape =>
  fc.tuple(formText(shape), fc.constantFrom(...shape.wanted), fc.nat(15)).map(([text, wanted, kind]) => ({
    text: kind === 0 ? `${'note=1&'.repeat(1_000)}${text}` : kind === 1 ? `${text};` : text,
    wanted,
  })),
)

const formOperators: readonly (readonly [string, string])[] = [
  ['eq', '500'],
  ['ne', '5'],
  ['gt', '100'],
  ['lte', '100'],
  ['in', '5,7'],
  ['notIn', '5,7'],
  ['exists', 'true'],
]

/** The parameter that a program gets, by a name that nobody changes. */
const writtenForm = (values: readonly string[] | undefined): string =>
  (values ?? []).map(value => `wanted=${encodeURIComponent(value)}`).join('&') || 'other=1'

/** What a program may take of several values: one of them. */
const choicesOf = (values: readonly string[] | undefined) =>
  values === undefined ? [undefined] : [...new Set(values)].map(value => [value])

t.test('a decision on a parameter of a form or a query is not milder than for any framework', async t => {
  let strict = 0
  let allowed = 0
  fc.assert(
    fc.property(formCase, fc.constantFrom(...formOperators), ({ text, wanted }, [operator, value]) => {
      const rulebooksFor = (field: string) => rulebooksOf({ field, operator, value })
      const place = JSON.stringify(wanted)
      const inForm = rulebooksFor(`input.body[${place}]`).map(rulebook => decide(rulebook, form(text)))
      const inQuery = rulebooksFor(`input.query[${place}]`).map(rulebook => decideQuery(rulebook, text))
      if (inForm[2] === 'Allow') allowed++
      const plainly = rulebooksFor('input.body.wanted')
      for (const [name, reader] of Object.entries(formReaders)) {
        for (const values of choicesOf(reader(text, wanted))) {
          const seen = plainly.map(rulebook => decide(rulebook, form(writtenForm(values))))
          const what = `${name} reads ${values} for ${wanted} in ${text.slice(-99)}, ${operator} ${value}`
          strict += compare(inForm, seen, what)
          compare(inQuery, seen, `${what}, in a query`)
        }
      }
    }),
    { numRuns: runs(6_000, 750) },
  )
  t.ok(strict > runs(1_000), `${strict} times a framework saw what is not allowed`)
  t.ok(allowed > runs(20, -1), `${allowed} forms were allowed by what they say`)
})

function decideQuery(rulebook: Rulebook, text: string): Decision {
  const { head, body } = described({ request: { url: `https://a.example/?${text.replaceAll(' ', '%20')}` } })
  return decideInFull(rulebook, head, body).decision
}
