/**
 * `npm test`: lint, types, unused code, then every test with its coverage. The last line is `N passed, N failed`.
 * Arguments are test files to run alone, without the other checks and without coverage.
 */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { delimiter } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** Least share of src/ that the tests run through, per cent. */
const leastCoverage = { lines: 95, branches: 95 }
/** One more than the processors that CI has: some tests wait for the clock, most for the disk. */
const jobs = 3

const root = fileURLToPath(new URL('..', import.meta.url))
const coverageFile = `${root}.tap/report/coverage-summary.json`
const env = {
  ...process.env,
  PATH: `${root}node_modules/.bin${delimiter}${process.env['PATH']}`,
  REDOCLY_TELEMETRY: 'off',
  // Every test file is a process, and most start a gateway, of three threads: compiling each module once for all of
  // them saves a sixth of the CPU time. Functions out of the cache are covered as exactly as others (compared).
  NODE_COMPILE_CACHE: `${root}.tap/compile-cache`,
}

const counted = { passed: 0, failed: 0 }

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

/** Runs the tests and counts each of them. A line for each file, and what a failed one had to say. */
async function runTests(options: readonly string[]): Promise<void> {
  const args = ['run', '--reporter=tap', `--jobs=${jobs}`, '--allow-incomplete-coverage', ...options]
  const child = spawn('tap', args, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const closed = new Promise<number | null>(resolve => child.on('close', resolve))
  const failedBefore = counted.failed
  let block: string[] = []
  for await (const line of createInterface(child.stdout)) {
    if (line.startsWith('# Subtest: ')) block = []
    block.push(line)
    const file = /^(ok|not ok) \d+ - (.*) # time=(.*)/.exec(line)
    if (file !== null) countFile(file[1] === 'ok', `${file[2]} ${file[3]}`, block)
  }
  const ended = await closed
  // A file that cannot be loaded, or a runner that breaks, fails no single test.
  if (ended !== 0 && counted.failed === failedBefore) count(false, `tap ended with ${ended}\n${block.join('\n')}`)
}

/** Titled tests stand one level below their file. One that is skipped or left to do is a failure. */
function countFile(passed: boolean, title: string, block: readonly string[]): void {
  const tests = block.filter(line => /^ {4}(ok|not ok) /.test(line))
  const bad = tests.filter(line => /^ {4}not ok /.test(line) || /^[^#]*# (SKIP|TODO)/i.test(line))
  counted.passed += tests.length - bad.length
  counted.failed += bad.length
  if (!passed && bad.length === 0) counted.failed++
  console.log(`${passed && bad.length === 0 ? 'ok    ' : 'FAILED'}  ${title} (${tests.length} tests)`)
  if (!passed || bad.length > 0)
    console.log(block.filter(line => !/^\s*ok \d+(?!.*# (SKIP|TODO))/i.test(line)).join('\n'))
}

function checkCoverage(): void {
  const { total } = existsSync(coverageFile) ? JSON.parse(readFileSync(coverageFile, 'utf8')) : { total: {} }
  for (const [kind, least] of Object.entries(leastCoverage)) {
    const { pct = 0 } = total[kind] ?? {}
    count(pct >= least, `${pct} % of ${kind} are covered; ${least} % are asked for`)
  }
}

const files = process.argv.slice(2)
// What tap is built of lives in node_modules, and an installation takes it away.
if (files.length === 0 || !existsSync(`${root}.tap/plugins`)) await check('tap is built', ['tap', 'build'])
if (files.length > 0) {
  await runTests(['--disable-coverage', ...files])
} else {
  rmSync(coverageFile, { force: true })
  // Each takes one processor and some seconds.
  await Promise.all([
    check('lint and format', ['biome', 'ci', '--colors=off']),
    check('types', ['tsc', '--noEmit']),
    check('nothing is unused', ['knip']),
    check('openapi.json', ['redocly', 'lint', 'openapi.json']),
  ])
  await runTests(['--coverage-report=json-summary', '--coverage-report=text'])
  checkCoverage()
}
console.log(`${counted.passed} passed, ${counted.failed} failed`)
process.exitCode = counted.failed === 0 ? 0 : 1
