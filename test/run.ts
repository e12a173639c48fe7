/**
 * `npm test`: lint, types, unused code, then every test with its coverage. The last line is `N passed, N failed`, and the
 * one above says what did not run. Arguments are test files to run alone, without the other checks and without coverage.
 *
 * Each file is a program that prints TAP. Those of a folder run in one process, as they load much the same, but for those
 * that measure their process. The runner of tap loads its own hooks into every thread of every process, which takes as
 * long again as all the tests.
 */
import { spawn } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleEntries, bundleOptions } from './fixtures/bundle.ts'
import { consoleBuild } from './fixtures/console-build.ts'
import { writeConsoleTypes } from './fixtures/console-types.ts'
import { startPostgres } from './fixtures/postgres.ts'
import { type FileResult, runFiles } from './fixtures/run-files.ts'
import { emptyDatabase } from './fixtures/sqlite.ts'

/** Least share of src/ that the tests run through, per cent. */
const leastCoverage = { lines: 95, branches: 95 }
/** Two more than the processors that CI has: some tests wait for the clock, most for the disk. A fleet keeps both busy. */
const jobs = process.env['GATEWAY_TEST_FLEET'] === undefined ? 4 : 2
/** Faults of a fleet are held to times, and need a machine with nothing else to do: `npm run test:faults`. */
const timed = /fixtures\/fleet\/fault\.ts/

/**
 * Not measured, which takes half as much of the processor again: tests that repeat one thing thousands of times, those that
 * look at the whole from outside, and long ones. They run through little that others do not: without them a half of a
 * per cent less of the branches is covered.
 */
const unmeasured = [
  /^test\/(bench|clients|console|contract|lifecycle|listeners|regress|security|threads)\//,
  /\/properties-|\/long-|-memory\.ts$|killed\.ts$/,
  /^test\/(agents\/secret|hitl\/model|limits\/fleet|llm\/usage-reader|proxy\/own-shortage|upstream\/http1-tls)\.ts$/,
]
const isMeasured = (file: string): boolean => !unmeasured.some(kind => kind.test(file))
/** What measures the threads of a gateway, too: tests of what those do. */
const ofThreads = /^test\/(agents|audit|cli|policies|runtime|storage)\//
/** Run again with three gateways on one database; `npm run test:fleet` runs all that can. */
const alsoInFleet = [
  'test/management/policy-hits.ts',
  'test/proxy/forwards.ts',
  'test/proxy/held-calls.ts',
  'test/proxy/hitl-grants.ts',
  'test/proxy/hitl-wait.ts',
  'test/lifecycle/restart.ts',
]
/** Files that look at their whole process: it is their own. */
const looksAtProcess =
  /fixtures\/(memory|cpu-time|long-life|fleet\/fault)\.ts|process\.(\w*Usage|on|env\[.*\] =)|\/proc\/self|mock\.timers/
/** Most files of one process: the last one ends when one process alone still runs. */
const mostFiles = 10
/** As many files as this may fail and run once more, one at a time: a process of them may have ended, and a real fault stays. */
const mostAgain = process.env['GATEWAY_TEST_AGAIN'] === undefined ? 0 : mostFiles
/** The longest go first, so that none is left to run alone at the end. */
const longest = [
  'test/cli/serve.ts',
  'test/threads/hangs.ts',
  'test/lifecycle/log-fails.ts',
  'test/proxy/own-shortage.ts',
  'test/policy/turns/turns.ts',
  'test/storage/long-life/idle.ts',
]

const root = fileURLToPath(new URL('..', import.meta.url))
const measures = join(root, '.tap/coverage')
const report = join(root, '.tap/report')
const env: NodeJS.ProcessEnv = {
  ...process.env,
  PATH: `${root}node_modules/.bin${delimiter}${process.env['PATH']}`,
  // Most test files start a gateway, of three threads: compiling each module once for all of them saves a sixth of the
  // CPU time. Functions out of the cache are covered as exactly as others (compared).
  NODE_COMPILE_CACHE: `${root}.tap/compile-cache`,
}

const counted = { passed: 0, failed: 0 }
const ran: { readonly file: string; readonly cpuMs: number; readonly seconds: string }[] = []
/** Files that ran again. */
const unsure: string[] = []
/** Milliseconds of what the files of a process share, such as a browser. */
let cpuOfShared = 0

function count(passed: boolean, name: string): void {
  counted[passed ? 'passed' : 'failed']++
  console.log(`${passed ? 'ok    ' : 'FAILED'}  ${name}`)
}

/** Runs a command with its output passed on; whether it succeeded. */
function succeeds([command = '', ...args]: readonly string[]): Promise<boolean> {
  const child = spawn(command, args, { cwd: root, env, stdio: 'inherit' })
  return new Promise(resolve => {
    child.on('error', error => {
      console.error(error.message)
      resolve(false)
    })
    child.on('close', code => resolve(code === 0))
  })
}

async function check(name: string, command: readonly string[]): Promise<void> {
  count(await succeeds(command), name)
}

function testFiles(): readonly string[] {
  const exclude = [
    'test/fixtures/**',
    'test/clients/{node_modules,fixtures,run}/**',
    'test/storage/contract.ts',
    'test/storage/contract/**',
    'test/storage/long-life/{server,statements}.ts',
    'test/*/child/**',
    'test/{system,packages}/**',
  ]
  const all = globSync('test/*/**/*.ts', { cwd: root, exclude }).sort()
  const found = all.filter(file => !timed.test(readFileSync(join(root, file), 'utf8')))
  return [...longest, ...found.filter(file => !longest.includes(file))]
}

/** The real clients are a package of their own, so that nothing else can lean on what they bring. */
async function installClients(): Promise<void> {
  if (existsSync(join(root, 'test/clients/node_modules/.package-lock.json'))) return
  await check('the clients are installed', ['npm', 'ci', '--prefix', 'test/clients', '--loglevel=error'])
}

/** One database server, and one build of the console, for all files that need them. */
async function runTests(files: readonly string[], measured: boolean): Promise<void> {
  const texts = files.map(file => readFileSync(join(root, file), 'utf8'))
  const needs = (pattern: RegExp) => texts.some(text => pattern.test(text))
  const folder = needs(/fixtures\/console\.ts/) ? mkdtempSync(join(tmpdir(), 'gateway-console-')) : undefined
  if (folder !== undefined) {
    await check('the console is built', consoleBuild(folder))
    env['GATEWAY_TEST_CONSOLE'] = folder
  }
  if (files.some(file => file.startsWith('test/clients/'))) await installClients()
  const isShared = env['GATEWAY_TEST_STORAGE'] === 'PostgreSQL' || env['GATEWAY_TEST_FLEET'] !== undefined
  const needsServer = isShared || needs(/createSchema|openProxied|postgresContract\(t\)|fixtures\/fleet\//)
  const server = needsServer ? await startPostgres() : undefined
  if (server !== undefined) env['GATEWAY_TEST_POSTGRES'] = server.url
  await runAll(files, measured).finally(() => server?.stop())
  if (folder !== undefined) rmSync(folder, { recursive: true })
}

/** Divides the files among processes: those of a folder, some at a time. What is left of several folders shares one. */
function divided(files: readonly string[]): readonly (readonly string[])[] {
  const groups: string[][] = []
  const open = new Map<string, string[]>()
  for (const file of files) {
    const isAlone = longest.includes(file) || looksAtProcess.test(readFileSync(join(root, file), 'utf8'))
    const [, folder] = file.split('/')
    const kind = `${folder} ${isMeasured(file)}`
    let group = isAlone ? undefined : open.get(kind)
    if (group === undefined || group.length === mostFiles) {
      group = []
      groups.push(group)
      if (!isAlone) open.set(kind, group)
    }
    group.push(file)
  }
  return withRestsJoined(groups, new Set(open.values()))
}

/**
 * Processes of the same kind: measured or not, their threads measured or not. A short run, as that of a fleet, is over sooner
 * with more of them side by side.
 */
function withRestsJoined(groups: readonly string[][], rests: ReadonlySet<string[]>): readonly string[][] {
  if (groups.length < 5 * jobs) return groups
  const joined = new Map<string, string[]>()
  return groups.filter(group => {
    if (!rests.has(group)) return true
    const [first = ''] = group
    const kind = `${isMeasured(first)} ${ofThreads.test(first)}`
    const before = joined.get(kind)
    const fits = before !== undefined && before.length + group.length <= mostFiles
    if (fits) before.push(...group)
    else joined.set(kind, group)
    return !fits
  })
}

/** Runs the files, some at a time, and counts their tests. A line for each file, and what a failed one had to say. */
async function runAll(files: readonly string[], measured: boolean): Promise<void> {
  const waiting = [...divided(files)]
  // Writing them takes as long as twenty gateways gain.
  const isLong = files.length > mostFiles
  const entries = isLong ? await bundleEntries() : undefined
  const empty = isLong ? await emptyDatabase() : undefined
  if (empty !== undefined) env['GATEWAY_TEST_DATABASE'] = empty.file
  const bundles = entries === undefined ? {} : { entries }
  const options = await bundleOptions(bundles)
  const optionsOfThreads = await bundleOptions({ ...bundles, measuresThreads: '' })
  const nodeOf = (file: string) => (ofThreads.test(file) ? optionsOfThreads : options)
  const failed: FileResult[] = []
  const work = async (): Promise<void> => {
    for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) {
      const [first = ''] = group
      const folder = measured && isMeasured(first) ? join(measures, first.replaceAll('/', '-')) : undefined
      const coverage = folder === undefined ? {} : { NODE_V8_COVERAGE: folder }
      const setup = { cwd: root, env: { ...env, ...coverage }, node: nodeOf(first) }
      const { results, sharedCpuMs } = await runFiles(group, setup)
      for (const result of results) {
        if (result.failed > 0 && mostAgain > 0) failed.push(result)
        else tellResult(result)
      }
      cpuOfShared += sharedCpuMs
      if (folder !== undefined) keepOwn(folder)
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  for (const first of failed) {
    if (failed.length <= mostAgain) await runAgain(first, nodeOf(first.file))
    else tellResult(first)
  }
  delete env['GATEWAY_TEST_DATABASE']
  for (const folder of [entries, empty?.folder]) if (folder !== undefined) rmSync(folder, { recursive: true })
}

/** Alone. That the file failed before is printed, whatever comes now. */
async function runAgain({ file, said }: FileResult, node: readonly string[]): Promise<void> {
  console.log(`UNSURE  ${file} failed beside others, and runs again alone`)
  console.log(said)
  unsure.push(file)
  const { results } = await runFiles([file], { cwd: root, env, node })
  for (const result of results) tellResult(result)
}

function tellResult({ file, passed, failed, ms, cpuMs, said }: FileResult): void {
  counted.passed += passed
  counted.failed += failed
  const seconds = `${(ms / 1_000).toFixed(1)} s, ${(cpuMs / 1_000).toFixed(1)} s of CPU`
  ran.push({ file, cpuMs, seconds })
  console.log(`${failed === 0 ? 'ok    ' : 'FAILED'}  ${file} ${seconds} (${passed + failed} tests)`)
  if (failed > 0) console.log(said)
}

/** The files that take the most processor time, and the sum of all. */
function tellSlowest(): void {
  const seconds = (ms: number): string => `${(ms / 1_000).toFixed(0)} s`
  const cpu = ran.reduce((sum, { cpuMs }) => sum + cpuMs, cpuOfShared)
  const shared = `${seconds(cpuOfShared)} of it shared`
  console.log(
    `${ran.length} files, ${seconds(performance.now())}, ${seconds(cpu)} of CPU, ${shared}. Those with the most:`,
  )
  const slowest = ran.toSorted((a, b) => b.cpuMs - a.cpuMs).slice(0, 10)
  for (const { file, seconds } of slowest) console.log(`        ${file} ${seconds}`)
}

/** What did not run, and the commands for it. */
function tellOthers(isAll: boolean): void {
  const names = new Set(ran.map(({ file }) => file))
  const others = testFiles().filter(file => !names.has(file)).length
  if (unsure.length > 0)
    console.log(`Failed at first: ${unsure.join(', ')}. A test that can fail by chance is a fault.`)
  console.log(`Ran: ${names.size} files of tests${isAll ? ', lint, types, unused code and coverage' : ''}.`)
  if (!isAll) console.log(`Not run: ${others} other files, lint, types, unused code and coverage (npm test).`)
  const system = 'what calls programs of the system (npm run test:system), '
  const more = 'packages (test:packages), faults of a fleet (test:faults), random tests at full length (test:long)'
  if (isAll) console.log(`Not run: ${system}${more}.`)
}

/** Node measures every module that it loads; those of others are thrown away at once, as they are most of it. */
function keepOwn(folder: string): void {
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder)) {
    const own = ownOf(readFileSync(join(folder, name), 'utf8'))
    if (own !== undefined) writeFileSync(join(measures, name), JSON.stringify({ result: own }))
  }
  rmSync(folder, { recursive: true })
}

/** Undefined when the process was killed, or had no room, while it wrote. */
function ownOf(text: string): readonly object[] | undefined {
  try {
    const { result } = JSON.parse(text) as { result: { url: string }[] }
    return result.filter(({ url }) => url.startsWith(`file://${root}src/`))
  } catch {
    return undefined
  }
}

async function checkCoverage(): Promise<void> {
  const reporters = ['--reporter=json-summary', '--reporter=text']
  const folders = [`--temp-directory=${measures}`, `--reports-dir=${report}`]
  await check('coverage is put together', ['c8', 'report', '--include=src/**', ...folders, ...reporters])
  const summary = join(report, 'coverage-summary.json')
  const { total } = existsSync(summary) ? JSON.parse(readFileSync(summary, 'utf8')) : { total: {} }
  for (const [kind, least] of Object.entries(leastCoverage)) {
    const { pct = 0 } = total[kind] ?? {}
    count(pct >= least, `${pct} % of ${kind} are covered; ${least} % are asked for`)
  }
}

const files = process.argv.slice(2)
writeConsoleTypes()
if (files.length > 0) {
  await runTests(files, false)
  tellSlowest()
} else {
  for (const folder of [measures, report]) rmSync(folder, { recursive: true, force: true })
  mkdirSync(measures, { recursive: true })
  await installClients()
  // Each takes one processor and some seconds.
  await Promise.all([
    check('lint and format', ['biome', 'ci', '--colors=off']),
    check('types', ['tsc', '--noEmit']),
    check('types of the console', ['tsc', '--noEmit', '-p', 'src/console']),
    check('types of the clients', ['tsc', '--noEmit', '-p', 'test/clients']),
    check('nothing is unused', ['knip']),
  ])
  await runTests(testFiles(), true)
  env['GATEWAY_TEST_FLEET'] = '3'
  await runTests(alsoInFleet, false)
  tellSlowest()
  await checkCoverage()
}
tellOthers(files.length === 0)
console.log(`${counted.passed} passed, ${counted.failed} failed`)
process.exitCode = counted.failed === 0 ? 0 : 1
