/**
 * What review costs those who are not reviewed: the p99 of allowed requests through a whole gateway, in a process of
 * its own, quiet and while requests are held, listed and decided. Both in turns, at the same offered load. The gateway
 * has a core to itself. In the quiet part the requests that would be held go to the upstream, so that their sender takes
 * the same of the other core; senders and reviewers give way there to what is measured.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { waitedMicroseconds } from './cpu.ts'
import { createSender, type Request } from './load.ts'
import { chooseCores } from './machine.ts'
import { run, start, temporaryFolder } from './processes.ts'
import { type Call, caller, type Reviews } from './reviews.ts'
import { median } from './stats.ts'
import { startNodeUpstream } from './upstream.ts'

const rounds = 5
const seconds = 4
/** Offered a second. */
const allowed = 500
const held = 300
/** Verdicts at once on one request, and how often, milliseconds. */
const rivals = 50
const contestMs = 1_000
const niceness = 5

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const settings = {
  System: {
    Server: { Http: { Port: 0 }, DrainSeconds: 2, KeepAliveSeconds: 60 },
    RateLimit: { RequestsPerMinute: 10_000_000, Burst: 10_000_000, MaxInFlight: 1_000_000 },
    ManagementRateLimit: { RequestsPerMinute: 10_000_000, Burst: 10_000_000 },
  },
  Security: { AgentAuth: { TokenRequests: { BcryptCost: 4 } } },
  // The agent is denied again and again.
  Trust: { QuarantineBelow: 0, QuarantineDenials: 0 },
  HumanInTheLoop: { MaxPendingRequests: 1_000_000, MaxPendingPercentPerAgent: 100, Threshold: 1 },
  Policies: [
    {
      name: 'writes-are-held',
      default: 'Allow',
      rules: [
        { name: 'writes', effect: 'Hitl', conditions: [{ field: 'input.method', operator: 'eq', value: 'POST' }] },
      ],
    },
  ],
  Logging: { Access: false },
}

/** Milliseconds, the median over the rounds. */
export interface Tails {
  readonly quiet: number
  readonly busy: number
  /** Median of the ratios of each round. */
  readonly ratio: number
  /** Share of the quiet time, 0 to 1, in which the gateway waited for its core: above some 0.1 others have it, too. */
  readonly disturbed: number
}

export async function measureTraffic(): Promise<Tails> {
  const cores = await chooseCores()
  const upstream = await startNodeUpstream(cores.others)
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'gateway.yaml'), JSON.stringify(settings))
  const command = [process.execPath, main, 'serve', '--config', 'gateway.yaml']
  const gateway = start({ command, cores: cores.proxy, cwd: folder, outputFile: join(folder, 'log') })
  const [, url = ''] = await gateway.shows(/Address +(\S+)/)
  const call = caller(url)
  const bootstrap = JSON.parse(readFileSync(join(folder, 'data', 'bootstrap.json'), 'utf8'))
  const admin = await tokenOf(call, bootstrap)
  const token = await newAgent(call, admin)
  const sender = await createSender(cores.others)
  const other = await createSender(cores.others, niceness)
  const upstreamUrl = `http://127.0.0.1:${upstream.port}/`
  const headers = { 'Gateway-Authorization': `Bearer ${token}` }
  const get: Request = { url: `${url}/proxy/${upstreamUrl}`, method: 'GET', headers }
  const post = (to: string): Request => ({ url: to, method: 'POST', headers, body: 'x'.repeat(1_000) })
  const hold = (to: string) => other.sendPaced({ request: post(to), connections: 32, seconds: seconds + 1 }, held)
  const tail = async () => (await sender.sendPaced({ request: get, connections: 32, seconds }, allowed)).p99

  const quiet: number[] = []
  const busy: number[] = []
  const waits: number[] = []
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    const before = waitedMicroseconds(gateway.pid)
    const [alone] = await Promise.all([tail(), hold(upstreamUrl)])
    const waited = waitedMicroseconds(gateway.pid) - before
    const reviews = review({ url, token: admin, seconds, rivals, contestMs }, cores.others)
    const [among] = await Promise.all([tail(), hold(get.url), reviews])
    if (round === 0) continue
    waits.push(waited / (seconds + 1) / 1e6)
    quiet.push(alone)
    busy.push(among)
  }
  await gateway.stop()
  await upstream.process.stop()
  const ratio = median(busy.map((ms, index) => ms / quiet[index]!))
  return { quiet: median(quiet), busy: median(busy), ratio, disturbed: median(waits) }
}

function review(reviews: Reviews, cores: string | undefined): Promise<string> {
  const script = fileURLToPath(new URL('reviews.ts', import.meta.url))
  return run(['nice', '-n', String(niceness), process.execPath, script, JSON.stringify(reviews)], cores)
}

async function newAgent(call: Call, admin: string): Promise<string> {
  const clientSecret = 'a secret for measurements only'
  const agent = { name: 'bench', ownerId: 'bench', clientSecret, policyName: 'writes-are-held' }
  const { id } = JSON.parse((await call('POST', '/agents', agent, admin)).toString())
  return tokenOf(call, { agentId: id, clientSecret })
}

async function tokenOf(call: Call, credential: object): Promise<string> {
  return JSON.parse((await call('POST', '/tokens', credential)).toString()).accessToken
}
