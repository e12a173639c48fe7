import fs, { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import type { Test } from 'tap'
import t from 'tap'
import { StartupError } from '../../src/errors.ts'
import { openPolicies } from '../../src/policies/open.ts'
import { createClock } from '../fixtures/clock.ts'
import { language } from '../fixtures/language.ts'
import { openOwn } from '../fixtures/registry.ts'

const store = await openOwn(t)

// Following a directory does not keep a process alive.
const alive = setInterval(() => {}, 60_000)
t.teardown(() => clearInterval(alive))

/** Policies of a directory, with what is told of reloads as it comes. */
async function open(t: Test, directory: string, inline: readonly unknown[] = []) {
  const told: string[][] = []
  const waiting: (() => void)[] = []
  const tell = (what: readonly string[]) => {
    told.push([...what])
    for (const wake of waiting.splice(0)) wake()
  }
  const policies = await openPolicies({
    store,
    language,
    clock: createClock(),
    usedBy: () => undefined,
    directory,
    inline,
    report: { reloaded: tell, rejected: tell },
  })
  t.teardown(() => policies.close())
  const untilTold = () => new Promise<void>(resolve => waiting.push(resolve))
  return { ...policies, told, untilTold }
}

t.test('a changed file is in force soon, without being asked', async t => {
  const directory = t.testdir({ 'a.yaml': 'name: a\n' })
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
  const steps = [
    ['a', 'b'],
    ['a', 'b', 'c'],
  ]
  t.strictSame(told, steps, 'changes that come together are one reload')
})

t.test('a bad file keeps the last good version of all, and says so', async t => {
  const directory = t.testdir({ 'a.yaml': 'name: a\n' })
  const { book, reload, told } = await open(t, directory)
  const before = book.get('a')
  writeFileSync(join(directory, 'a.yaml'), 'name: a\ndescription: new\n')
  writeFileSync(join(directory, 'b.yaml'), 'name: b\ndefault: Maybe\n')
  t.equal(await reload(), false)
  t.equal(book.get('a'), before)
  t.match(told.at(-1), [/b\.yaml:2:1: default: .*\(E_EFFECT\)$/])
  writeFileSync(join(directory, 'b.yaml'), 'name: b\n')
  t.equal(await reload(), true)
  t.strictSame(told.at(-1), ['a', 'b'])
})

t.test('a bad file, or a bad policy in gateway.yaml, refuses the start with every mistake', async t => {
  const directory = t.testdir({ 'a.yaml': 'name: a\ndefault: Maybe\n', 'b.yaml': 'name: [\n' })
  const start = open(t, directory, [{ name: 'inline', rules: 'none' }])
  const error = await start.then(
    () => undefined,
    (error: unknown) => error,
  )
  t.ok(error instanceof StartupError)
  const lines = (error as Error).message.split('\n')
  t.match(lines, [/b\.yaml:\d+:\d+: /, /^gateway\.yaml: Policies\[0\]: rules: /, /a\.yaml:2:1: default: /])
})

t.test('policies of gateway.yaml stay beside those of files', async t => {
  const { book, reload } = await open(t, t.testdir({ 'a.yaml': 'name: a\n' }), [{ name: 'inline' }])
  const sources = () => book.list().map(({ document, source }) => `${document.name} ${source}`)
  t.strictSame(sources(), ['a file', 'inline config'])
  await reload()
  t.strictSame(sources(), ['a file', 'inline config'])
})

t.test('a directory that is not there holds no policies, and is followed once it is reloaded', async t => {
  const directory = join(t.testdir(), 'policies')
  const { book, reload, told, untilTold } = await open(t, directory)
  t.strictSame(book.list(), [])
  t.equal(await reload(), false, 'what is not there cannot be read')
  t.match(told.at(-1), [/ENOENT/])
  mkdirSync(directory)
  t.equal(await reload(), true)
  const change = untilTold()
  writeFileSync(join(directory, 'a.yaml'), 'name: a\n')
  await change
  t.ok(book.get('a'))
})

t.test('a directory that goes away while the gateway runs takes no policy with it', async t => {
  const directory = join(t.testdir({ policies: { 'a.yaml': 'name: a\n' } }), 'policies')
  const { book, untilTold } = await open(t, directory)
  const change = untilTold()
  rmSync(directory, { recursive: true })
  await change
  t.ok(book.get('a'))
})

t.test('a directory that is put in the place of the old one is read', async t => {
  const root = t.testdir({ policies: { 'a.yaml': 'name: a\n' }, next: { 'b.yaml': 'name: b\n' } })
  const { book, reload, untilTold } = await open(t, join(root, 'policies'))
  renameSync(join(root, 'policies'), join(root, 'before'))
  renameSync(join(root, 'next'), join(root, 'policies'))
  t.equal(await reload(), true)
  t.strictSame(
    book.list().map(({ document }) => document.name),
    ['b'],
  )
  const change = untilTold()
  writeFileSync(join(root, 'policies', 'c.yaml'), 'name: c\n')
  await change
  t.ok(book.get('c'))
})

t.test('a directory that is a file refuses the start', async t => {
  const path = join(t.testdir({ policies: 'text' }), 'policies')
  await t.rejects(open(t, path), StartupError)
})

t.test('a directory that cannot be followed is said, and can still be reloaded', async t => {
  const directory = t.testdir({ 'a.yaml': 'name: a\n' })
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
  const parts = { store, language, clock: createClock(), usedBy: () => undefined, inline: [] }
  const { book, reload } = await openPolicies({ ...parts, directory, report })
  t.match(rejected, ['Policy:Directory is not watched: too many watchers'])
  writeFileSync(join(directory, 'b.yaml'), 'name: b\n')
  t.equal(await reload(), true)
  t.ok(book.get('b'))
})
