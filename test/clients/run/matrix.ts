/**
 * `npm run test:clients`: calls all clients in all modes, under `run` and under `run --lock`, some at a time. It prints a row for
 * each as it ends. Arguments are names of clients to call alone; `--left` calls those that did not pass in the run before.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { clients } from './clients.ts'
import { forgetResult, hasPassed, readResult } from './results.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const page = readFileSync(`${root}docs/forward-proxy.md`, 'utf8')
/** Clients of one process, which share a gateway. */
const each = 3
/** Processes at once: clients wait for the gateway, and some for the clock. */
const jobs = 3

interface Turn {
  readonly isLocked: boolean
  readonly names: readonly string[]
}

const args = process.argv.slice(2)
const named = new Set(args.filter(arg => arg !== '--left'))
const isLeft = (name: string, isLocked: boolean) => !args.includes('--left') || !hasPassed(readResult(name, isLocked))

/** The clients to call, in shares of which each has some that are slow. */
function turnsOf(isLocked: boolean): readonly Turn[] {
  const names = clients
    .filter(({ name, onlyLocked = false }) => (named.size === 0 || named.has(name)) && (isLocked || !onlyLocked))
    .map(({ name }) => name)
    .filter(name => isLeft(name, isLocked))
  const count = Math.ceil(names.length / each)
  return Array.from({ length: count }, (_, turn) => ({ isLocked, names: names.filter((_, at) => at % count === turn) }))
}

async function take({ isLocked, names }: Turn): Promise<void> {
  for (const name of names) forgetResult(name, isLocked)
  const file = `test/system/clients${isLocked ? '-locked' : ''}.ts`
  const env = { ...process.env, GATEWAY_TEST_CLIENTS: names.join() }
  const child = spawn(process.execPath, ['test/run.ts', file], { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const said = await text(child.stdout)
  const passed = names.map(name => tell(name, isLocked))
  if (passed.includes(false)) console.log(said)
}

const counted = { passed: 0, failed: 0 }

function tell(name: string, isLocked: boolean): boolean {
  const result = readResult(name, isLocked)
  const passed = hasPassed(result)
  counted[passed ? 'passed' : 'failed'] += 1
  const head = `${passed ? 'ok    ' : 'FAILED'}  ${name}${isLocked ? ', locked' : ''}`
  if (result === undefined) console.log(`${head} has not come to its end`)
  else {
    const modes = result.outcomes.map(({ mode, ok, seconds }) => `${mode} ${ok ? `${seconds.toFixed(1)} s` : 'FAILED'}`)
    console.log(`${head} ${result.version}: ${modes.join(', ')}`)
    const title = clients.find(client => client.name === name)?.title
    if (!page.includes(`| ${title} | ${result.version} |`))
      console.log('        docs/forward-proxy.md has another version')
  }
  return passed
}

const waiting = [...turnsOf(true), ...turnsOf(false)]
const work = async (): Promise<void> => {
  for (let turn = waiting.shift(); turn !== undefined; turn = waiting.shift()) await take(turn)
}
await Promise.all(Array.from({ length: jobs }, work))
console.log(`${(performance.now() / 60_000).toFixed(1)} minutes\n${counted.passed} passed, ${counted.failed} failed`)
process.exitCode = counted.failed === 0 ? 0 : 1
