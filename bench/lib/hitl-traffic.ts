/**
 * What review costs those who are not reviewed: the p99 of allowed requests through a whole gateway, in a process of
 * its own, quiet and while requests are held, listed and decided. Both in turns, at the same offered load.
 */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Request } from './load.ts'
import { createSender } from './load.ts'
import { chooseCores } from './machine.ts'
import { start, temporaryFolder } from './processes.ts'
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

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const settings = {
  System: {
    Server: { Http: { Port: 0 }, DrainSeconds: 2, KeepAliveSeconds: 60 },
    RateLimit: { RequestsPerMinute: 10_000_000, Burst: 10_000_000 },
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

type Call = (method: string, path: string, body?: object, token?: string) => Promise<Buffer>

/** Milliseconds, the median over the rounds. */
export interface Tails {
  readonly quiet: number
  readonly busy: number
  /** Median of the ratios of each round. */
  readonly ratio: number
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
  const proxied = (method: string, body?: string): Request => ({
    url: `${url}/proxy/http://127.0.0.1:${upstream.port}/`,
    method,
    headers: { 'Gateway-Authorization': `Bearer ${token}` },
    ...(body === undefined ? {} : { body }),
  })
  const tail = async () => (await sender.sendPaced({ request: proxied('GET'), connections: 32, seconds }, allowed)).p99

  const quiet: number[] = []
  const busy: number[] = []
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    const alone = await tail()
    const hold = { request: proxied('POST', 'x'.repeat(1_000)), connections: 32, seconds: seconds + 1 }
    const storm = [sender.sendPaced(hold, held), decide(call, admin, seconds)]
    const among = await tail()
    await Promise.all(storm)
    if (round === 0) continue
    quiet.push(alone)
    busy.push(among)
  }
  await gateway.stop()
  await upstream.process.stop()
  return { quiet: median(quiet), busy: median(busy), ratio: median(busy.map((ms, index) => ms / quiet[index]!)) }
}

/** Lists what waits and has many reviewers decide one of it at once, again and again. */
async function decide(call: Call, token: string, seconds: number): Promise<void> {
  for (let left = (seconds * 1_000) / contestMs; left > 0; left--) {
    const list = await call('GET', '/hitl?rule=writes', undefined, token)
    // Megabytes: to parse them all would keep the load from being sent.
    const id = /"id":"([^"]+)"/.exec(list.toString('latin1', 0, 200))?.[1]
    const verdicts = Array.from({ length: id === undefined ? 0 : rivals }, (_, index) =>
      call('POST', `/hitl/${id}/${index % 2 === 0 ? 'approve' : 'deny'}`, {}, token),
    )
    await Promise.all([...verdicts, new Promise(resolve => setTimeout(resolve, contestMs))])
  }
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

/** Over kept connections, and with less work than fetch: the cores are shared with what is measured. */
function caller(url: string): Call {
  const agent = new Agent({ keepAlive: true })
  return async (method, path, body, token) => {
    const text = body === undefined ? '' : JSON.stringify(body)
    const headers = {
      ...(body && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }),
      ...(token && { Authorization: `Bearer ${token}` }),
    }
    const sent = request(url + path, { method, headers, agent })
    sent.end(text)
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    return buffer(answer)
  }
}
