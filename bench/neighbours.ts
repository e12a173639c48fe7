/** One hostile agent at default limits beside a victim that sends 100 requests a second: what the victim feels of it. */
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startGateway } from './lib/gateway.ts'
import { type Answers, createSender } from './lib/load.ts'
import { neighbourAttacks, type Orders } from './lib/neighbour-attacks.ts'
import { readOptions } from './lib/options.ts'
import { type Running, start } from './lib/processes.ts'
import { median, quantile } from './lib/stats.ts'
import { figure, table } from './lib/table.ts'
import { startNodeUpstream } from './lib/upstream.ts'

const help = `node bench/neighbours.ts [--seconds N] [--only NAME]

Prints the victim's p99 and that of /health, in milliseconds, under each attack, under all at once, and 5 s afterwards.
Each is measured between two quiet times, and compared with both. "offered" counts the requests (or connections without
one) that the attacker began in a second; it gives way to the others on the processor (nice), so it is what they leave.
Goals: p99 at most twice that of quiet, /health within 50 ms, no request of the victim refused.
`
const { values } = readOptions(help, {
  seconds: { type: 'string', default: '5' },
  only: { type: 'string' },
})
const seconds = Number(values.seconds)
const perSecond = 100

const policy = {
  name: 'reads-bodies',
  default: 'Allow',
  rules: [
    {
      name: 'held',
      effect: 'Hitl',
      priority: 1,
      conditions: [{ field: 'input.path', operator: 'eq', value: '/held' }],
    },
    { name: 'no-keys', effect: 'Deny', conditions: [{ field: 'input.bodyText', operator: 'detects', value: 'iban' }] },
  ],
}
/**
 * The defaults, which other measurements raise, with one exception: the victim sends 6,000 requests a minute, ten times
 * the default rate. The hostile agent may send as many, so that the measurement is harder than the defaults are.
 */
const defaultLimits = {
  ForwardProxy: { Enabled: true, Port: 0 },
  System: {
    Server: { KeepAliveSeconds: 5 },
    RateLimit: { RequestsPerMinute: 60 * perSecond, Burst: 100, MaxInFlight: 64 },
    ManagementRateLimit: { RequestsPerMinute: 600, Burst: 200 },
  },
}
const { port } = await startNodeUpstream(undefined)
const gateway = await startGateway({ policies: [policy], cores: undefined, settings: defaultLimits })
const hostile = await startAgent()

async function startAgent(): Promise<string> {
  const headers = { Authorization: `Bearer ${gateway.admin}`, 'Content-Type': 'application/json' }
  const clientSecret = 'a secret for measurements only'
  const call = async (path: string, body: object) => {
    const answer = await fetch(`${gateway.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return (await answer.json()) as { readonly id: string; readonly accessToken: string }
  }
  const { id } = await call('/agents', { name: 'hostile', ownerId: 'x', clientSecret, policyName: policy.name })
  return (await call('/tokens', { agentId: id, clientSecret })).accessToken
}

/** p99 of the victim's requests and of calls of /health, milliseconds. Rejects when a request of the victim fails. */
interface Felt {
  readonly victim: Pick<Answers, 'p99'>
  readonly health: number
}

const request = {
  url: `${gateway.url}/proxy/http://127.0.0.1:${port}/items`,
  method: 'GET',
  headers: { 'Gateway-Authorization': `Bearer ${gateway.token}` },
}
const sender = await createSender(undefined)

async function measure(): Promise<Felt> {
  const done = new AbortController()
  const looks: number[] = []
  const watching = (async () => {
    while (!done.signal.aborted) {
      const start = performance.now()
      const answer = await fetch(`${gateway.url}/health`)
      await answer.arrayBuffer()
      looks.push(performance.now() - start)
      await setTimeout(50)
    }
  })()
  try {
    const victim = await sender.sendPaced({ request, connections: 16, seconds }, perSecond)
    return { victim, health: quantile(looks, 0.99) }
  } finally {
    done.abort()
    await watching
  }
}

const attacker = fileURLToPath(new URL('lib/neighbour-attacks.ts', import.meta.url))

async function startAttack(attacks: readonly string[]): Promise<Running> {
  const orders: Orders = { url: gateway.url, forwardPort: gateway.forwardPort, token: hostile, attacks }
  const child = start({ command: ['nice', '-n', '10', process.execPath, attacker, JSON.stringify(orders)] })
  await child.shows(/attacking/)
  await setTimeout(500)
  return child
}

const rows: string[][] = []
let before = await measure()

async function row(name: string, attacks: readonly string[]): Promise<void> {
  const start = performance.now()
  const attack = attacks.length === 0 ? undefined : await startAttack(attacks)
  const felt = await measure().catch((error: Error) => error)
  if (attack !== undefined) process.kill(attack.pid, 'SIGUSR2')
  const [, offered] = (await attack?.shows(/offered (\d+)/)) ?? []
  const rate = offered === undefined ? undefined : (Number(offered) / (performance.now() - start)) * 1e3
  await attack?.stop()
  await setTimeout(attacks.length > 1 ? 5_000 : 500)
  const after = await measure()
  const quiet = median([before.victim.p99, after.victim.p99])
  before = after
  if (felt instanceof Error) rows.push([name, felt.message.split('\n')[0] ?? ''])
  else {
    const { victim, health } = felt
    const figures = [victim.p99, quiet, victim.p99 / quiet, health, rate]
    rows.push([name, ...figures.map((value, at) => figure(value, at === 2 ? 2 : 1))])
  }
}

const names = Object.keys(neighbourAttacks).filter(name => values.only === undefined || name === values.only)
for (const name of names) await row(name, [name])
await row('all at once', names)
await row('5 s afterwards', [])
const head = ['', 'p99 ms', 'quiet', 'x quiet', '/health p99 ms', 'offered a second']
process.stdout.write(`${table(head, rows)}\n`)
await gateway.process.stop()
process.exit()
