import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { refusalKinds } from '../../src/base/refusal-kinds.ts'
import { schema } from '../../src/config/schema.ts'
import { settingsOf } from '../../src/config/setting.ts'
import { bounds } from '../../src/telemetry/layout.ts'
import { readSources, type Source, type SourceFunction } from '../fixtures/source.ts'

/** From the bottom up. A file imports from lower layers and its own part only. */
const layers = [
  ['base'],
  ['runtime'],
  ['log'],
  ['policy', 'limits', 'llm'],
  ['fleet'],
  ['config'],
  ['api', 'http', 'storage', 'telemetry'],
  ['policies', 'agents', 'tokens', 'upstream', 'audit', 'hitl', 'intercept', 'budgets'],
  ['credentials'],
  ['pipeline', 'management'],
  ['threads'],
  ['gateway'],
  ['cli'],
  ['main.ts'],
]

/** Parts that know no socket, no clock and nothing outside themselves but base, which knows nothing at all. */
const pure = ['base', 'policy', 'limits', 'llm']

/** The layers of src/policy/, from the bottom up. A folder imports from those before it only. */
const policyLayers = [
  'values',
  'detectors',
  'turns',
  'request',
  'language',
  'risk',
  'evaluation',
  'lint',
  'propose',
  'diff',
]

const root = fileURLToPath(new URL('../..', import.meta.url))
const sources = readSources()
/** The console is compiled with other settings: its imports are read as text, those of a page that is loaded later too. */
const consoleSources = globSync('src/console/**/*.{ts,tsx}', { cwd: root }).map(path => {
  const specifiers = readFileSync(root + path, 'utf8').matchAll(/(?:from |^import |\bimport\()'(\.[^']*)'/gm)
  return { path, files: Array.from(specifiers, ([, to]) => join(dirname(path), to as string)) }
})

/** `policy` for src/policy/language/parse.ts, `main.ts` for src/main.ts. */
const partOf = (path: string): string => path.split('/')[1] as string
const layerOf = (path: string): number => layers.findIndex(layer => layer.includes(partOf(path)))

const imports = sources.flatMap(source => source.files.map(to => ({ from: source.path, to })))
const functions = sources.flatMap(source => source.functions)

t.test('every file belongs to a layer', async t => {
  t.strictSame(
    sources.filter(({ path }) => layerOf(path) < 0).map(({ path }) => path),
    [],
  )
})

t.test('a file imports from lower layers and its own folder only', async t => {
  const wrong = imports.filter(({ from, to }) => partOf(from) !== partOf(to) && layerOf(to) >= layerOf(from))
  t.strictSame(
    wrong.map(({ from, to }) => `${from} may not import ${to}`),
    [],
  )
})

t.test('base imports nothing from outside; policy, limits and llm import base alone', async t => {
  const wrong = imports.filter(
    ({ from, to }) => pure.includes(partOf(from)) && partOf(to) !== partOf(from) && partOf(to) !== 'base',
  )
  t.strictSame(
    wrong.map(({ from, to }) => `${from} may not import ${to}`),
    [],
  )
})

t.test('every file of the policy engine is in a layer, which imports the layers before it only', async t => {
  const policyLayerOf = (path: string): number => policyLayers.indexOf(path.split('/')[2] as string)
  const inPolicy = (path: string): boolean => partOf(path) === 'policy'
  const without = sources.filter(({ path }) => inPolicy(path) && policyLayerOf(path) < 0)
  const wrong = imports.filter(
    ({ from, to }) => inPolicy(from) && inPolicy(to) && policyLayerOf(to) > policyLayerOf(from),
  )
  t.strictSame(
    [
      ...without.map(({ path }) => `${path} is in no layer`),
      ...wrong.map(({ from, to }) => `${from} may not import ${to}`),
    ],
    [],
  )
})

t.test('the console and the server import nothing of each other', async t => {
  const out = consoleSources.flatMap(({ path, files }) =>
    files.filter(to => !to.startsWith('src/console/')).map(to => `${path} may not import ${to}`),
  )
  t.strictSame(out, [])
  t.strictSame(
    imports.filter(({ to }) => to.startsWith('src/console/')).map(({ from }) => from),
    [],
  )
  t.ok(consoleSources.length > 0)
})

t.test('no file of the console is longer than 300 lines', async t => {
  const files = globSync('src/console/**/*.{ts,tsx,css}', { cwd: root, exclude: ['src/console/types.ts'] })
  const long = files.map(file => ({
    file,
    lines: readFileSync(root + file, 'utf8')
      .trimEnd()
      .split('\n').length,
  }))
  t.strictSame(
    long.filter(({ lines }) => lines > 300).map(({ file, lines }) => `${file} has ${lines} lines`),
    [],
  )
})

t.test('no file imports itself through others', async t => {
  t.strictSame(cycles([...sources, ...consoleSources]), [])
})

t.test('each third-party package enters through one file or one folder', async t => {
  const homes = Map.groupBy(
    sources.flatMap(({ path, packages }) => packages.map(name => ({ name, path }))),
    ({ name }) => name,
  )
  const spread = [...homes].filter(([, found]) => new Set(found.map(({ path }) => partOf(path))).size > 1)
  t.strictSame(
    spread.map(([name, found]) => `${name} enters through ${found.map(({ path }) => path).join(', ')}`),
    [],
  )
})

t.test('no file is longer than 300 lines, and half are no longer than 110', async t => {
  t.strictSame(
    sources.filter(({ lines }) => lines > 300).map(({ path, lines }) => `${path} has ${lines} lines`),
    [],
  )
  t.ok(
    quantile(
      sources.map(({ lines }) => lines),
      0.5,
    ) <= 110,
  )
})

t.test('no function is longer than 60 lines; half are no longer than 10, and 9 of 10 no longer than 40', async t => {
  t.strictSame(listed(functions, 'lines', 60), [])
  const lengths = functions.map(({ lines }) => lines)
  t.ok(quantile(lengths, 0.5) <= 10)
  t.ok(quantile(lengths, 0.9) <= 40)
})

t.test('no function takes more than 4 parameters or nests deeper than 3', async t => {
  t.strictSame(listed(functions, 'parameters', 4), [])
  t.strictSame(listed(functions, 'nesting', 3), [])
})

t.test('only clock.ts reads the time', async t => {
  t.strictSame(usedOutside('src/runtime/clock.ts', /^(Date\.now|performance\.now|process\.hrtime|newDate\(\))/), [])
})

t.test('only main.ts reads the environment', async t => {
  t.strictSame(usedOutside('src/main.ts', /^process\.env\b/), [])
})

t.test('nothing is of type any', async t => {
  t.strictSame(usedOutside('', /^any$/), [])
})

t.test('an error without a class of its own is thrown for what cannot happen, and says so', async t => {
  t.strictSame(usedOutside('', /^thrownewError\((?!['`"]cannothappen)/), [])
})

t.test('a module is imported in one statement, with its types inline', async t => {
  const files = globSync('{src,test,bench}/**/*.ts', { cwd: root, exclude: ['**/node_modules/**'] })
  const twice = files.flatMap(file => {
    const text = readFileSync(root + file, 'utf8')
    const modules = [...text.matchAll(/^(?:import|\}) [^'"\n]*from '([^']+)'$/gm)].map(([, name]) => name)
    return modules.filter((name, index) => modules.indexOf(name) < index).map(name => `${file} imports ${name} twice`)
  })
  t.strictSame(twice, [])
})

t.test('only http/node-http.ts imports values of node:http, which would cost 15 MiB of memory', async t => {
  t.strictSame(
    sources.flatMap(({ path }) =>
      /^import (?!type ).*'node:http'$/m.test(readFileSync(root + path, 'utf8')) ? [path] : [],
    ),
    [],
  )
})

/**
 * V8 creates such a function in its old generation, for methods of prototypes. It keeps what it refers to until the next full
 * collection: for a function of one request, that request. A function that has a name first is created as others are.
 */
t.test('what the storage takes of policies imports nothing: its thread would load the whole engine', async t => {
  const taken = imports.filter(({ from, to }) => from.startsWith('src/storage/') && to.startsWith('src/policy/'))
  t.strictSame(
    imports.filter(({ from }) => taken.some(({ to }) => to === from)),
    [],
  )
})

t.test('on the path of requests no function is created in an assignment to a property', async t => {
  const onPath = /^src\/(policy|limits|http|tokens|upstream|pipeline)\//
  const assigned = /\.#?\w+ (?:\?\?|\|\|)?= (?:async )?(?:function\b|(?:\w+|\([^)]*\)(?:: [^=]+)?) =>)/g
  const found = sources
    .filter(({ path }) => onPath.test(path))
    .flatMap(({ path }) =>
      [...readFileSync(root + path, 'utf8').matchAll(assigned)].map(([text]) => `${path}: ${text}`),
    )
  t.strictSame(found, [])
})

t.test('only an indexed value is asserted to be there', async t => {
  t.strictSame(usedOutside('', /[^\]]!$/), [])
})

t.test('a type is asserted only where a comment beside it says why', async t => {
  t.strictSame(
    sources.flatMap(({ bareCasts }) => bareCasts),
    [],
  )
})

t.test('every refusal, limit and setting is used outside the table that declares it', async t => {
  const texts = new Map(sources.map(({ path }) => [path, readFileSync(root + path, 'utf8')]))
  const outside = (table: RegExp) => [...texts].flatMap(([path, text]) => (table.test(path) ? [] : text)).join('\n')
  const unused = (names: Iterable<string>, text: string) => [...names].filter(name => !text.includes(name))
  const quoted = (names: Iterable<string>) => Array.from(names, name => `'${name}'`)
  const words = new Set(outside(/^src\/config\/(schema|proxy|limits|server)/).match(/\w+/g))
  const settings = [...settingsOf(schema)].map(([path]) => path)
  t.strictSame(unused(quoted(Object.keys(refusalKinds)), outside(/refusals\.ts$/)), [])
  t.strictSame(unused(quoted(bounds.cells.keys()), outside(/layout\.ts$/)), [])
  t.strictSame(
    settings.filter(
      path =>
        !path
          .at(-1)
          ?.split('-')
          .every(word => words.has(word)),
    ),
    [],
  )
})

t.test('a type name is declared once: one word has one meaning', async t => {
  const places = Map.groupBy(
    sources.flatMap(({ types }) => types),
    ({ name }) => name,
  )
  const twice = [...places].filter(([, all]) => all.length > 1)
  t.strictSame(
    twice.map(([name, all]) => `${name} is declared at ${all.map(({ place }) => place).join(' and ')}`),
    [],
  )
})

/** Words that say nothing to a reader who searches, and the words of the field in their place. */
const houseWords: Readonly<Record<string, string>> = {
  ...{ shelf: 'cache, active', untold: 'delta', told: 'sent', tell: 'notify, report', hear: 'listen, receive' },
  ...{ near: 'cache', gathered: 'buffered', standing: 'trust', room: 'capacity, layer', seen: 'received, recorded' },
  ...{ patience: 'timeout', paced: 'rate', quiet: 'idle', most: 'max', lane: 'queue', anew: 'again' },
}

/** Names that are stored, sent or shown, and so are not changed. */
const shownNames: ReadonlySet<string> = new Set([
  // A field of policies, and its counterpart in the activity of an agent.
  ...['hostSeen', '#hostSeen'],
  // The 412 for If-Match.
  'not_as_seen',
  // A member of `GET /fleet`.
  'lastSeenAt',
  // A table, and a column of agents.
  ...['seen_tools', 'standing'],
  // A column of the records that the function for leases reads, in gateways of two versions.
  'paced',
])

t.test('no name has a word that only this project uses', async t => {
  const partsOf = (name: string) => name.replace('#', '').split(/_|(?=[A-Z])/)
  const found = sources
    .flatMap(({ names }) => names)
    .filter(({ name }) => !shownNames.has(name))
    .flatMap(({ name, place }) =>
      partsOf(name.replace(/s$/, ''))
        .filter(part => Object.hasOwn(houseWords, part.toLowerCase()))
        .map(part => `${place}: ${name}; instead of "${part}": ${houseWords[part.toLowerCase()]}`),
    )
  t.strictSame(found, [])
  const all = new Set(sources.flatMap(({ names }) => names.map(({ name }) => name)))
  t.strictSame(
    [...shownNames].filter(name => !all.has(name)),
    [],
  )
})

function usedOutside(path: string, pattern: RegExp): string[] {
  const others = sources.filter(source => source.path !== path)
  return others.flatMap(({ uses }) =>
    uses.filter(({ text }) => pattern.test(text)).map(({ text, place }) => `${place}: ${text}`),
  )
}

function listed(all: readonly SourceFunction[], what: 'lines' | 'parameters' | 'nesting', max: number): string[] {
  return all.filter(one => one[what] > max).map(one => `${one.place}: ${one.name} has ${one[what]} ${what}`)
}

function quantile(values: readonly number[], share: number): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length * share)] as number
}

t.test('tests are written with tap, compare exactly, and none is skipped', async t => {
  const files = globSync('test/**/*.ts', { cwd: root, exclude: ['test/**/node_modules/**', 'test/cases/**'] })
  t.ok(files.length > 400)
  const wrong = files.flatMap(file => {
    const text = readFileSync(join(root, file), 'utf8')
    // `t.testdir` is one folder for each test, which a second call empties: see test/fixtures/testdir.ts.
    const calls = text.match(/(?<![.\w])(t|root)\.(same|notSame|testdir|skip|todo|only)\(/g) ?? []
    const imports = text.match(/from '[^']*(fixtures|\.)\/tap\.ts'/g) ?? []
    return [...calls, ...imports].map(found => `${file}: ${found}`)
  })
  t.strictSame(wrong, [])
})

/** Each way from a file back to itself, once, as the list of files on it. */
function cycles(all: readonly Pick<Source, 'path' | 'files'>[]): string[] {
  const files = new Map(all.map(source => [source.path, source.files]))
  const done = new Set<string>()
  const found: string[] = []
  const visit = (path: string, above: readonly string[]): void => {
    if (above.includes(path)) found.push([...above.slice(above.indexOf(path)), path].join(' -> '))
    if (above.includes(path) || done.has(path)) return
    for (const next of files.get(path) ?? []) visit(next, [...above, path])
    done.add(path)
  }
  for (const { path } of all) visit(path, [])
  return found
}
