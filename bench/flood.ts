/**
 * Guessing of secrets must not be felt by those who have theirs: `node bench/flood.ts`. While POST /tokens is called
 * 500 times a second with wrong secrets, the p99 of proxied requests may not double and that of /health stays under
 * 100 ms. Exit code 1 when it does not.
 */
import { fileURLToPath } from 'node:url'
import { startGateway } from './lib/gateway.ts'
import type { Guesses } from './lib/guesses.ts'
import { type Answers, createSender, type Sender } from './lib/load.ts'
import { describeMachine, machineText } from './lib/machine.ts'
import { readOptions } from './lib/options.ts'
import { run } from './lib/processes.ts'
import { benchPolicy } from './lib/rules.ts'
import { median, ratios } from './lib/stats.ts'
import { figure, table } from './lib/table.ts'
import { startUpstream } from './lib/upstream.ts'

const help = `usage: node bench/flood.ts [options]

  --rounds N        rounds that count, after one to warm up (5)
  --seconds N       length of each part of a round (4)
  --guesses N       wrong secrets a second (500)
  --slack N         the goals are multiplied by it, for machines that do other things too (1)
`

const { values } = readOptions(help, {
  rounds: { type: 'string', default: '5' },
  seconds: { type: 'string', default: '4' },
  guesses: { type: 'string', default: '500' },
  slack: { type: 'string', default: '1' },
})

const [rounds, seconds, perSecond, slack] = [values.rounds, values.seconds, values.guesses, values.slack].map(
  Number,
) as [number, number, number, number]
const proxiedPerSecond = 300
const healthPerSecond = 50
const goals = { proxyRatio: 2 * slack, healthMs: 100 * slack }

/**
 * No guesses at the gateway, guesses from one address about one agent, guesses from everywhere about everyone. In the
 * quiet part they go to the upstream: what their sender takes of the machine is the same in all parts.
 */
const parts = ['quiet', 'one address', 'many addresses'] as const

interface Part {
  readonly proxy: Answers
  readonly health: Answers
  readonly statuses: string
}

await main()
process.exit()

async function main(): Promise<void> {
  const upstream = await startUpstream(undefined)
  const gateway = await startGateway({
    policies: [benchPolicy(100)],
    cores: undefined,
    settings: {
      System: { Server: { TrustedProxies: ['127.0.0.1'] } },
      Security: { AgentAuth: { TokenRequests: { BcryptCost: 10 } } },
    },
  })
  const sender = await createSender(undefined)
  const target = { url: gateway.url, token: gateway.token, upstream: `http://127.0.0.1:${upstream.port}/` }
  const measured: Part[][] = []
  for (let round = -1; round < rounds; round++) {
    const parted: Part[] = []
    for (const part of parts) parted.push(await measure(sender, target, part))
    // The first round warms up.
    if (round >= 0) measured.push(parted)
  }
  console.log(machineText(await describeMachine(), { proxy: undefined, others: undefined }))
  report(measured)
}

type Target = { readonly url: string; readonly token: string; readonly upstream: string }

async function measure(sender: Sender, { url, token, upstream }: Target, part: (typeof parts)[number]): Promise<Part> {
  const headers = { 'Gateway-Authorization': `Bearer ${token}` }
  const proxied = { url: `${url}/proxy/${upstream}`, method: 'GET', headers }
  const health = { url: `${url}/health`, method: 'GET', headers: {} }
  const guesses: Guesses = {
    url: part === 'quiet' ? new URL(upstream).origin : url,
    agentId: '00000000-0000-4000-8000-000000000000',
    perSecond,
    // It begins before what is measured and ends after it.
    seconds: seconds + 1.5,
    spread: part === 'many addresses',
  }
  const [proxy, healthy, statuses] = await Promise.all([
    sender.sendPaced({ request: proxied, connections: 32, seconds }, proxiedPerSecond),
    sender.sendPaced({ request: health, connections: 4, seconds }, healthPerSecond),
    runGuesses(guesses),
  ])
  return { proxy, health: healthy, statuses: statuses.trim() }
}

function runGuesses(guesses: Guesses): Promise<string> {
  const script = fileURLToPath(new URL('lib/guesses.ts', import.meta.url))
  return run([process.execPath, script, JSON.stringify(guesses)])
}

function report(measured: readonly (readonly Part[])[]): void {
  const p99 = (index: number, what: 'proxy' | 'health') => measured.map(round => round[index]?.[what].p99 ?? Number.NaN)
  const quiet = p99(0, 'proxy')
  let met = true
  const rows = parts.map((part, index) => {
    const ratio = median(ratios(p99(index, 'proxy'), quiet))
    const health = median(p99(index, 'health'))
    if (index > 0) met &&= ratio < goals.proxyRatio && health < goals.healthMs
    const statuses = measured.at(-1)?.[index]?.statuses ?? ''
    return [part, figure(median(p99(index, 'proxy')), 1), figure(ratio, 2), figure(health, 1), statuses]
  })
  console.log(`\n${perSecond} wrong secrets a second; medians of ${rounds} rounds, milliseconds:\n`)
  console.log(table(['guesses', 'proxy p99', 'of quiet', '/health p99', 'answers of the last round'], rows))
  const wanted = `proxy p99 under ${goals.proxyRatio} x quiet, /health p99 under ${goals.healthMs} ms`
  console.log(`\n${met ? 'passed' : 'FAILED'}: ${wanted}`)
  if (!met) process.exitCode = 1
}
