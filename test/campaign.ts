/**
 * `npm run campaign`: faults of a fleet of gateways (test/fleet/README.md), as long and as often as one likes.
 *
 *   npm run campaign -- --faults [6,9] [--times 20] [--short]   each fault, or those named, so many times in a row;
 *                                                              with --short at the length of npm test
 *   npm run campaign -- --seeds 500 [--first 1] [--operations 2000]   random operations with faults
 *
 * A seed that fails is tried again with fewer operations. Exit code 1 when something failed.
 */
import { spawn } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
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

/** Runs a test file and gives its output; that of a failed test is printed. */
async function run(file: string, env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(process.execPath, [file], {
    cwd: root,
    env: { ...process.env, ...env, ...(values.short ? {} : { GATEWAY_TEST_CAMPAIGN: '1' }) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const output = await text(child.stdout)
  if (/^not ok/m.test(output)) console.log(output)
  return output
}

async function runFaults(env: NodeJS.ProcessEnv): Promise<void> {
  const chosen = positionals.length === 0 ? env : { ...env, GATEWAY_TEST_FAULTS: positionals.join() }
  const hasFaults = (file: string) => /^ *fault\(/m.test(readFileSync(`${root}${file}`, 'utf8'))
  const files = globSync('test/fleet/*.ts', { cwd: root }).filter(hasFaults).sort()
  for (let time = 1; time <= Number(values.times); time++) {
    for (const file of files) {
      const start = performance.now()
      const found = [...(await run(file, chosen)).matchAll(/^(not )?ok \d+ - (fault [^#\n]*)/gm)]
      const ms = (performance.now() - start) / found.length
      for (const [, not, title = ''] of found) note(title.trim(), not === undefined, ms)
    }
    console.log(`${time} of ${values.times}`)
  }
}

async function runSeed(seed: number, operations: number, env: NodeJS.ProcessEnv): Promise<boolean> {
  const settings = { GATEWAY_TEST_SEED: String(seed), GATEWAY_TEST_OPERATIONS: String(operations) }
  return !/^not ok/m.test(await run('test/fleet/random.ts', { ...env, ...settings }))
}

async function runSeeds(env: NodeJS.ProcessEnv): Promise<void> {
  const operations = Number(values.operations)
  for (let seed = Number(values.first); seed < Number(values.first) + Number(values.seeds); seed++) {
    const start = performance.now()
    const passed = await runSeed(seed, operations, env)
    note('random operations', passed, performance.now() - start)
    console.log(`seed ${seed}: ${passed ? 'passed' : 'FAILED'}`)
    for (let fewer = operations; !passed && fewer > 20; ) {
      fewer = Math.floor(fewer / 2)
      if (!(await runSeed(seed, fewer, env))) console.log(`seed ${seed} fails with ${fewer} operations too`)
    }
  }
}

const server = await startPostgres()
const env = { GATEWAY_TEST_POSTGRES: server.url }
if (values.faults) await runFaults(env)
await runSeeds(env)
await server.stop()
for (const [title, { passed, failed, ms }] of results) {
  console.log(
    `${failed === 0 ? 'ok    ' : 'FAILED'}  ${title}: ${passed} passed, ${failed} failed, ${Math.round(ms / 1_000)} s`,
  )
}
process.exitCode = [...results.values()].some(({ failed }) => failed > 0) ? 1 : 0
