/**
 * `npm run campaign`: faults of a fleet of gateways (test/fleet/README.md), as long and as often as one likes.
 *
 *   npm run campaign -- --faults [6,9] [--times 20] [--short]   each fault, or those named, so many times in a row;
 *                                                              with --short at the length of npm test
 *   npm run campaign -- --seeds 500 [--first 1] [--operations 2000] [--at-once 2]   random operations with faults, so
 *                                                              many seeds at the same time, each on its own database
 *   npm run campaign -- --planted [1,2]                        each planted error, or those named, is found
 *
 * A seed that fails is tried again with fewer operations. Exit code 1 when something failed.
 */
import { spawn } from 'node:child_process'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Planted, planted } from './fixtures/fleet/planted.ts'
import { startPostgres } from './fixtures/postgres.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    faults: { type: 'boolean', default: false },
    short: { type: 'boolean', default: false },
    times: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '0' },
    first: { type: 'string', default: '1' },
    operations: { type: 'string', default: '2000' },
    'at-once': { type: 'string', default: '2' },
    planted: { type: 'boolean', default: false },
  },
})

interface Result {
  readonly passed: number
  readonly failed: number
  readonly ms: number
}

const results = new Map<string, Result>()

function note(title: string, passed: boolean, ms: number): void {
  const before = results.get(title) ?? { passed: 0, failed: 0, ms: 0 }
  results.set(title, {
    passed: before.passed + Number(passed),
    failed: before.failed + Number(!passed),
    ms: before.ms + ms,
  })
}

/** Gateways start often: with the cache, in a third of the time. */
const compileCache = join(root, '.tap/compile-cache')

/** Runs a test file to its end and gives its output. */
async function runQuietly(file: string, env: NodeJS.ProcessEnv, cwd = root): Promise<string> {
  const length = values.short ? {} : { GATEWAY_TEST_CAMPAIGN: '1' }
  const child = spawn(process.execPath, [file], {
    cwd,
    // A file would else have 30 s for all of its faults.
    env: { NODE_COMPILE_CACHE: compileCache, TAP_TIMEOUT: '3600', ...process.env, ...env, ...length },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return await text(child.stdout)
}

const hasFailed = (output: string): boolean => /^not ok/m.test(output)

/** The same; the output of a failed test is printed. */
async function run(file: string, env: NodeJS.ProcessEnv): Promise<string> {
  const output = await runQuietly(file, env)
  if (hasFailed(output)) console.log(output)
  return output
}

/** Files with tests of these faults; of all when there are none. */
function filesOf(faults: readonly string[]): readonly string[] {
  const isMeant = (file: string) => {
    const numbers = [...readFileSync(join(root, file), 'utf8').matchAll(/^ *fault\(\s*(\d+)/gm)].map(
      ([, number]) => number!,
    )
    return numbers.some(number => faults.length === 0 || faults.includes(number))
  }
  return globSync('test/fleet/*.ts', { cwd: root }).filter(isMeant).sort()
}

async function runFaults(env: NodeJS.ProcessEnv): Promise<void> {
  const faults = positionals.flatMap(list => list.split(','))
  const chosen = faults.length === 0 ? env : { ...env, GATEWAY_TEST_FAULTS: faults.join() }
  for (let time = 1; time <= Number(values.times); time++) {
    for (const file of filesOf(faults)) {
      const start = performance.now()
      const found = [...(await run(file, chosen)).matchAll(/^(not )?ok \d+ - (fault [^#\n]*)/gm)]
      const ms = (performance.now() - start) / found.length
      for (const [, not, title = ''] of found) note(title.trim(), not === undefined, ms)
    }
    console.log(`${time} of ${values.times}`)
  }
}

const settingsOf = (seed: number, operations: number) => ({
  GATEWAY_TEST_SEED: String(seed),
  GATEWAY_TEST_OPERATIONS: String(operations),
})

async function runSeed(seed: number, env: NodeJS.ProcessEnv): Promise<void> {
  const operations = Number(values.operations)
  const start = performance.now()
  const passes = async (operations: number) =>
    !hasFailed(await run('test/fleet/random.ts', { ...env, ...settingsOf(seed, operations) }))
  const passed = await passes(operations)
  note('random operations', passed, performance.now() - start)
  console.log(`seed ${seed}: ${passed ? 'passed' : 'FAILED'}`)
  for (let fewer = operations; !passed && fewer > 20; ) {
    fewer = Math.floor(fewer / 2)
    if (!(await passes(fewer))) console.log(`seed ${seed} fails with ${fewer} operations too`)
  }
}

async function runSeeds(): Promise<void> {
  const first = Number(values.first)
  const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => first + index).values()
  const lane = () =>
    onServer(async env => {
      for (const seed of seeds) await runSeed(seed, env)
    })
  await Promise.all(Array.from({ length: Math.min(Number(values['at-once']), Number(values.seeds)) }, lane))
}

/** A copy of the sources in which the error is planted. */
function plant({ changes }: Planted): string {
  const copy = mkdtempSync(join(tmpdir(), 'planted-'))
  const unwanted = new Set(['node_modules', '.git', '.tap', 'dist'].map(name => join(root, name)))
  cpSync(root, copy, { recursive: true, filter: from => !unwanted.has(from) })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  for (const { file, from, to } of changes) {
    const before = readFileSync(join(copy, file), 'utf8')
    if (before.split(from).length !== 2) throw new TypeError(`${file} must have this once: ${from}`)
    writeFileSync(
      join(copy, file),
      before.replace(from, () => to),
    )
  }
  return copy
}

/** The assertion that failed, or the error that ended the test. */
const firstFailure = /^ +not ok \d+ - (.*)/m

/** A planted error that seeds find is found by one of so many. */
const mostSeeds = 5

async function runPlanted(env: NodeJS.ProcessEnv): Promise<void> {
  const chosen = positionals.flatMap(list => list.split(',')).map(Number)
  for (const [index, error] of planted.entries()) {
    if (chosen.length > 0 && !chosen.includes(index + 1)) continue
    const copy = plant(error)
    const start = performance.now()
    const runs =
      error.foundBy === 'seeds'
        ? Array.from({ length: mostSeeds }, (_, seed) => ({
            file: 'test/fleet/random.ts',
            ...settingsOf(seed + 1, 1_000),
          }))
        : filesOf([error.foundBy]).map(file => ({ file, GATEWAY_TEST_FAULTS: error.foundBy }))
    let why: string | undefined
    for (const { file, ...settings } of runs) {
      why ??= (await runQuietly(file, { ...env, ...settings }, copy)).match(firstFailure)?.[1]
    }
    rmSync(copy, { recursive: true })
    const title = `planted ${index + 1}, ${error.what}: ${why ?? 'NOT FOUND'}`
    note(title, why !== undefined, performance.now() - start)
    console.log(title)
  }
}

/** Does the work with a database server of its own. */
async function onServer(work: (env: NodeJS.ProcessEnv) => Promise<void>): Promise<void> {
  const server = await startPostgres()
  await work({ GATEWAY_TEST_POSTGRES: server.url }).finally(() => server.stop())
}

if (values.faults) await onServer(runFaults)
if (values.planted) await onServer(runPlanted)
await runSeeds()
for (const [title, { passed, failed, ms }] of results) {
  console.log(
    `${failed === 0 ? 'ok    ' : 'FAILED'}  ${title}: ${passed} passed, ${failed} failed, ${Math.round(ms / 1_000)} s`,
  )
}
if (results.size === 0)
  console.error('Nothing ran. Give --faults, --seeds or --planted, with numbers of test/fleet/README.md.')
process.exitCode = results.size > 0 && [...results.values()].every(({ failed }) => failed === 0) ? 0 : 1
