import fs, { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { StartupError } from '../../src/base/refusals.ts'
import type { PolicyBook } from '../../src/policies/book.ts'
import type { PolicyChanges } from '../../src/policies/changes.ts'
import { openPolicies } from '../../src/policies/open.ts'
import { createReloader } from '../../src/policies/reload.ts'
import { createClock } from '../fixtures/clock.ts'
import { openOwn } from '../fixtures/registry.ts'
import { testdir } from '../fixtures/testdir.ts'

const store = await openOwn(t)

// Following a directory does not keep a process alive.
const alive = setInterval(() => {}, 60_000)
t.teardown(() => clearInterval(alive))

const namesOf = (book: PolicyBook) => book.list().map(({ document }) => document.name)

/** Policies of a directory, with what is told of reloads as it comes. */
async function open(t: Test, directory: string, inline: readonly unknown[] = []) {
  const told: string[][] = []
  const waiting: (() => void)[] = []
  const tell = (what: readonly string[]) => {
    told.push([...what])
    for (const wake of waiting.splice(0)) wake()
  }
  const reloaded = ({ added, changed, removed, shrunk }: PolicyChanges) => {
    const names = [...added.map(name => `+${name}`), ...changed, ...removed.map(name => `-${name}`)]
    tell([...names, ...shrunk])
  }
  const policies = await openPolicies({
    store,
    language: {},
    clock: createClock(),
    usedBy: () => undefined,
    directory,
    inline,
    report: { reloaded, rejected: tell },
    lookMs: 10,
  })
  t.teardown(() => policies.close())
  const untilTold = () => new Promise<void>(resolve => waiting.push(resolve))
  return { ...policies, told, untilTold }
}

t.test('a changed file is in force soon, without being asked', async t => {
  const directory = testdir(t, { 'a.yaml': 'name: a\n' })
  const { book, untilTold, told } = await open(t, directory)
  const change = untilTold()
  writeFileSync(join(directory, 'a.yaml'), 'name: a\ndescription: new\n')
  writeFileSync(join(directory, 'b.yaml'), 'name: b\n')
  await change
  t.equal(book.entry('a')?.document.description, 'new')
  t.ok(book.get('b'))
  const next = untilTold()
  writeFileSync(join(directory, 'c.yaml'), 'name: c\n')
  await next
  t.strictSame(told, [['+b', 'a'], ['+c']], 'changes that come together are one reload')
})

t.test('a bad file keeps the last good version of all, and says so', async t => {
  const directory = testdir(t, { 'a.yaml': 'name: a\n' })
  const { book, reload, told } = await open(t, directory)
  const before = book.get('a')
  writeFileSync(join(directory, 'a.yaml'), 'name: a\ndescription: new\n')
  writeFileSync(join(directory, 'b.yaml'), 'name: b\ndefault: Maybe\n')
  t.equal(await reload(), false)
  t.equal(book.get('a'), before)
  t.match(told.at(-1), [/b\.yaml:2:1: default: .*\(E_EFFECT\)$/])
  writeFileSync(join(directory, 'b.yaml'), 'name: b\n')
  t.equal(await reload(), true)
  t.strictSame(namesOf(book), ['a', 'b'])
})

t.test('a bad file, or a bad policy in gateway.yaml, refuses the start with every mistake', async t => {
  const directory = testdir(t, { 'a.yaml': 'name: a\ndefault: Maybe\n', 'b.yaml': 'name: [\n' })
  const start = open(t, directory, [{ name: 'inline', rules: 'none' }])
  const error = await start.then(
    () => undefined,
    (error: unknown) => error,
  )
  t.ok(error instanceof StartupError)
  const lines = (error as Error).message.split('\n')
  t.match(lines, [/^gateway\.yaml: Policies\[0\]: rules: /, /a\.yaml:2:1: default: /, /b\.yaml:\d+:\d+: /])
})

t.test('policies of gateway.yaml stay beside those of files', async t => {
  const { book, reload } = await open(t, testdir(t, { 'a.yaml': 'name: a\n' }), [{ name: 'inline' }])
  const sources = () => book.list().map(({ document, source }) => `${document.name} ${source}`)
  t.strictSame(sources(), ['a file', 'inline config'])
  await reload()
  t.strictSame(sources(), ['a file', 'inline config'])
})

t.test('a directory that is not there holds no policies, and is followed from the moment it is', async t => {
  const directory = join(testdir(t), 'policies')
  const { book, reload, told, untilTold } = await open(t, directory)
  t.strictSame(book.list(), [])
  t.equal(await reload(), false, 'what is not there cannot be read')
  t.match(told.at(-1), [/ENOENT/])
  const change = untilTold()
  mkdirSync(directory)
  writeFileSync(join(directory, 'a.yaml'), 'name: a\n')
  await change
  t.ok(book.get('a'))
})

t.test('a directory that goes away takes no policy with it, and is read when it is made again', async t => {
  const directory = join(testdir(t, { policies: { 'a.yaml': 'name: a\n' } }), 'policies')
  const { book, untilTold } = await open(t, directory)
  const gone = untilTold()
  rmSync(directory, { recursive: true })
  await gone
  t.ok(book.get('a'))
  const back = untilTold()
  mkdirSync(directory)
  writeFileSync(join(directory, 'b.yaml'), 'name: b\n')
  await back
  t.strictSame(namesOf(book), ['b'])
})

/** Puts a link in the place of another at once, as Kubernetes and deployments do. */
function swapLink(target: string, path: string): void {
  symlinkSync(target, `${path}.next`)
  renameSync(`${path}.next`, path)
}

t.test('a link to the directory that is swapped is followed, twice', async t => {
  const folders = { v1: { 'a.yaml': 'name: a\n' }, v2: { 'b.yaml': 'name: b\n' }, v3: { 'c.yaml': 'name: c\n' } }
  const root = testdir(t, folders)
  symlinkSync('v1', join(root, 'policies'))
  const { book, untilTold } = await open(t, join(root, 'policies'))
  for (const [target, name] of [
    ['v2', 'b'],
    [join(root, 'v3'), 'c'],
  ] as const) {
    const change = untilTold()
    swapLink(target, join(root, 'policies'))
    await change
    t.strictSame(namesOf(book), [name])
  }
  const change = untilTold()
  writeFileSync(join(root, 'v3', 'd.yaml'), 'name: d\n')
  await change
  t.strictSame(namesOf(book), ['c', 'd'], 'files behind the link are followed too')
})

t.test('a mount of Kubernetes, whose files are links through a link that is swapped, is followed', async t => {
  const root = testdir(t, {
    mount: { '..v1': { 'a.yaml': 'name: a\n' }, '..v2': { 'a.yaml': 'name: a\nowner: new\n' } },
  })
  const mount = join(root, 'mount')
  symlinkSync('..v1', join(mount, '..data'))
  symlinkSync('..data/a.yaml', join(mount, 'a.yaml'))
  const { book, untilTold } = await open(t, mount)
  const change = untilTold()
  swapLink('..v2', join(mount, '..data'))
  await change
  t.equal(book.entry('a')?.document.owner, 'new')
})

t.test('a file that is a link to one elsewhere is followed there', async t => {
  const root = testdir(t, { elsewhere: { 'x.txt': 'name: a\n' }, policies: {} })
  const target = join(root, 'elsewhere', 'x.txt')
  symlinkSync(target, join(root, 'policies', 'a.yaml'))
  const { book, untilTold } = await open(t, join(root, 'policies'))
  const change = untilTold()
  writeFileSync(target, 'name: a\nowner: new\n')
  await change
  t.equal(book.entry('a')?.document.owner, 'new')
})

t.test('only files that have changed are checked and compiled again', async t => {
  const names = Array.from({ length: 50 }, (_, index) => `p${index}`)
  const directory = testdir(t, Object.fromEntries(names.map(name => [`${name}.yaml`, `name: ${name}\n`])))
  const { book, reload } = await open(t, directory)
  const before = new Map(names.map(name => [name, book.get(name)]))
  writeFileSync(join(directory, 'p7.yaml'), 'name: p7\nowner: new\n')
  t.equal(await reload(), true)
  t.strictSame(
    names.filter(name => book.get(name) !== before.get(name)),
    ['p7'],
  )
})

t.test('a policy that has lost rules is in force, and that is said', async t => {
  const rule = (name: string) => `  - { name: ${name}, effect: Deny, conditions: [] }\n`
  const directory = testdir(t, { 'a.yaml': `name: a\nrules:\n${rule('x')}${rule('y')}` })
  const { reload, told } = await open(t, directory)
  writeFileSync(join(directory, 'a.yaml'), `name: a\nrules:\n${rule('x')}`)
  t.equal(await reload(), true)
  t.strictSame(told[0], ['a', 'policy a has fewer rules than before: 2, now 1'])
})

t.test('a directory that is put in the place of the old one is read', async t => {
  const root = testdir(t, { policies: { 'a.yaml': 'name: a\n' }, next: { 'b.yaml': 'name: b\n' } })
  const { book, reload, untilTold } = await open(t, join(root, 'policies'))
  renameSync(join(root, 'policies'), join(root, 'before'))
  renameSync(join(root, 'next'), join(root, 'policies'))
  t.equal(await reload(), true)
  t.strictSame(namesOf(book), ['b'])
  const change = untilTold()
  writeFileSync(join(root, 'policies', 'c.yaml'), 'name: c\n')
  await change
  t.ok(book.get('c'))
})

t.test('a directory that is a file refuses the start', async t => {
  const path = join(testdir(t, { policies: 'text' }), 'policies')
  await t.rejects(open(t, path), StartupError)
})

t.test('a directory that cannot be followed is said, and can still be reloaded', async t => {
  const directory = testdir(t, { 'a.yaml': 'name: a\n' })
  const { watch } = fs
  const replaceWatch = (by: typeof fs.watch) => {
    fs.watch = by
    syncBuiltinESMExports()
  }
  t.teardown(() => replaceWatch(watch))
  replaceWatch(() => {
    throw Object.assign(new Error('too many watchers'), { code: 'ENOSPC' })
  })
  const rejected: string[] = []
  const report = { reloaded: () => {}, rejected: (lines: readonly string[]) => void rejected.push(...lines) }
  const parts = { store, language: {}, clock: createClock(), usedBy: () => undefined, inline: [], lookMs: 10 }
  const { book, reload } = await openPolicies({ ...parts, directory, report })
  t.match(rejected, ['Policy:Directory is not watched: too many watchers'])
  writeFileSync(join(directory, 'b.yaml'), 'name: b\n')
  t.equal(await reload(), true)
  t.ok(book.get('b'))
})

/** A reloader over files whose state is the next of `states` at each look, and the last one from then on. */
function reloaderOver(states: string[]) {
  let state = ''
  const loaded: string[] = []
  const reported: (readonly string[])[] = []
  const reloader = createReloader(
    {
      lookMs: 0,
      look: async () => (state = states.shift() ?? state),
      read: async () => state,
      load: async files => {
        loaded.push(files)
        return files === 'bad' ? ['a mistake'] : []
      },
      report: lines => void reported.push(lines),
    },
    { stamp: 'start', lines: [] },
  )
  return { ...reloader, loaded, reported }
}

t.test('files that are written in pieces are read once, when four looks have shown the same', async t => {
  const pieces = ['half', 'half', 'half', 'half', 'most', 'most', 'most', 'most', 'whole']
  const { now, loaded, reported } = reloaderOver(pieces)
  t.equal(await now(), true)
  t.strictSame(loaded, ['whole'])
  t.strictSame(reported, [[]])
})

t.test('files that change while they are read are read again before they are in force', async t => {
  const { now, loaded } = reloaderOver(['half', 'half', 'half', 'half', 'half', 'whole'])
  t.equal(await now(), true)
  t.strictSame(loaded, ['whole'])
})

t.test('files that never come to rest leave what is in force, and that is said', async t => {
  const { now, loaded, reported } = reloaderOver(Array.from({ length: 1_000 }, (_, index) => `state ${index}`))
  t.equal(await now(), false)
  t.strictSame(loaded, [])
  t.match(reported, [[/keep changing/]])
})

t.test('however many reloads are asked for, files in the same state are read once', async t => {
  const { now, loaded } = reloaderOver(['new'])
  const answers = await Promise.all(Array.from({ length: 10 }, () => now()))
  t.ok(answers.every(answer => answer))
  t.strictSame(loaded, ['new'])
})

t.test('each who asks gets the mistake, without reading the same files again', async t => {
  const { now, loaded, reported } = reloaderOver(['bad'])
  t.equal(await now(), false)
  t.equal(await now(), false)
  t.strictSame(loaded, ['bad'])
  t.strictSame(reported, [['a mistake'], ['a mistake']])
})
