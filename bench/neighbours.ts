/** One hostile agent at default limits beside a victim that sends 100 requests a second: what the victim feels of it. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { startGateway } from './lib/gateway.ts'
import type { Answers } from './lib/load.ts'
import { createSender } from './lib/load.ts'
import { neighbourAttacks } from './lib/neighbour-attacks.ts'
import { readOptions } from './lib/options.ts'
import { quantile } from './lib/stats.ts'
import { table } from './lib/table.ts'
import { startNodeUpstream } from './lib/upstream.ts'

const help = `node bench/neighbours.ts [--seconds N] [--only NAME]

Prints the victim's p99 and the slowest /health while quiet, under each attack, under all at once, and 5 s afterwards.
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
  System: {
    Server: { KeepAliveSeconds: 5 },
    RateLimit: { RequestsPerMinute: 12_000, Burst: 100, MaxInFlight: 64 },
    ManagementRateLimit: { RequestsPerMinute: 600, Burst: 200 },
  },
}
function* endless(): Generator<Buffer> {
  for (;;) yield Buffer.alloc(16_384, 'x')
}
const { port } = await startNodeUpstream(undefined)
const bad = createServer((req, res) => {
  req.resume()
  if (req.url === '/503') res.writeHead(503).end()
  else if (req.url === '/endless') Readable.from(endless()).pipe(res)
  else if (req.url !== '/never') res.end()
}).listen(0, '127.0.0.1')
await new Promise(resolve => bad.once('listening', resolve))
const upstream = `http://127.0.0.1:${(bad.address() as AddressInfo).port}`
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

/** The victim's answers, and the slowest of many looks at /health, milliseconds. */
async function measure(): Promise<{ readonly victim: Answers | Error; readonly health: number }> {
  const request = {
    url: `${gateway.url}/proxy/http://127.0.0.1:${port}/items`,
    method: 'GET',
    headers: { 'Gateway-Authorization': `Bearer ${gateway.token}` },
  }
  const sender = await createSender(undefined)
  const done = new AbortController()
  const looks: number[] = []
  const watching = (async () => {
    while (!done.signal.aborted) {
      const start = performance.now()
      const isWell = await fetch(`${gateway.url}/health`).then(
        answer => answer.arrayBuffer().then(() => answer.ok),
        () => false,
      )
      looks.push(isWell ? performance.now() - start : Number.POSITIVE_INFINITY)
      await setTimeout(50)
    }
  })()
  const victim = await sender.sendPaced({ request, connections: 16, seconds }, perSecond).catch((error: Error) => error)
  done.abort()
  await watching
  return { victim, health: quantile(looks, 0.99) }
}

const rows: string[][] = []
let quiet = Number.NaN

async function row(name: string, attacks: readonly string[]): Promise<void> {
  const over = new AbortController()
  const target = { url: gateway.url, token: hostile, upstream, signal: over.signal }
  const running = attacks.map(attack => neighbourAttacks[attack]?.(target))
  if (attacks.length > 0) await setTimeout(500)
  const { victim, health } = await measure()
  over.abort()
  await Promise.all(running)
  if (victim instanceof Error) rows.push([name, victim.message.split('\n')[0] ?? '', '', health.toFixed(1)])
  else {
    if (Number.isNaN(quiet)) quiet = victim.p99
    rows.push([name, victim.p99.toFixed(1), (victim.p99 / quiet).toFixed(2), health.toFixed(1)])
  }
}

const names = Object.keys(neighbourAttacks).filter(name => values.only === undefined || name === values.only)
await row('quiet', [])
for (const name of names) await row(name, [name])
await row('all at once', names)
await setTimeout(5_000)
await row('5 s afterwards', [])
process.stdout.write(`${table(['', 'p99 ms', 'x quiet', '/health p99 ms'], rows)}\n`)
await gateway.process.stop()
process.exit()
