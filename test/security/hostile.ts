/**
 * T46, and all the others at once: a mixed attack on a gateway in a process of its own. At its end the process must be the same
 * and well, its memory and descriptors as before, nothing that was refused may have reached the upstream, nothing that was
 * approved twice, and the audit trail must be whole and tell the verdicts that were given.
 */
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { residentBytes } from '../../bench/lib/cpu.ts'
import { type StartedGateway, startGateway } from '../../bench/lib/gateway.ts'
import { verifyTrail } from '../../src/audit/trail.ts'
import type { AuditRecord } from '../../src/storage/store.ts'
import { type Attack, attacks, type Battlefield } from '../fixtures/attacks.ts'
import { runs } from '../fixtures/runs.ts'

const mebibyte = 2 ** 20
/** Length of the attack. */
const seconds = runs(60, 5)
/** Growth of resident memory, MiB. */
const mostGrowth = 256
/** Memory is compared with that after this share of the attack. */
const warmupShare = 0.25
/** After the attack the idle connections and the garbage go: at least so long, and at most, on a busy machine. */
const restMs = { least: 8_000, most: 60_000 }
const mostDescriptors = 100
/** At most so many of one attack at a time. */
const mostAtOnce = 64
const options = { timeout: 300_000 }

const startsWith = (name: string, value: string, effect: string) => ({
  name,
  effect,
  conditions: [{ field: 'input.path', operator: 'startsWith', value }],
})
const policy = {
  name: 'mixed',
  default: 'Deny',
  rules: [startsWith('fine', '/ok', 'Allow'), startsWith('ask', '/held/', 'Hitl')],
}

t.test('a mixed attack ends with the same process, nothing let through, and a true audit trail', options, async t => {
  const upstream = await startUpstream()
  const gateway = await startGateway({
    policies: [policy],
    cores: undefined,
    accessLog: true,
    settings: {
      System: { Server: { HeadersTimeoutSeconds: 2, IdleTimeoutSeconds: 3, KeepAliveSeconds: 3 } },
      Security: { AgentAuth: { TokenRequests: { PerAddressPerMinute: 100_000 } } },
      HumanInTheLoop: { TimeoutSeconds: 30, RetentionSeconds: 60 },
      Trust: { QuarantineDenials: 0, QuarantineBelow: 0 },
      Proxy: { AllowUpgrade: ['127.0.0.1'] },
    },
  })
  const field: Battlefield = {
    gateway: gateway.url,
    gatewayPort: Number(new URL(gateway.url).port),
    upstream: upstream.url,
    token: gateway.token,
    admin: gateway.admin,
    wrong: [],
    verdicts: new Map(),
    statuses: new Map(),
  }
  const { pid } = gateway.process
  const underway = Promise.all(attacks.map(([attack, perSecond]) => keepUp(field, attack, perSecond)))
  await setTimeout(seconds * 1e3 * warmupShare)
  const before = residentBytes(pid)
  await underway
  await rest(pid)
  const after = { bytes: residentBytes(pid), descriptors: descriptorsOf(pid) }
  const problems = [...field.wrong, ...(await inspect(field, gateway, upstream.seen))]
  const growth = (after.bytes - before) / mebibyte
  t.comment(`${field.verdicts.size} verdicts, ${growth.toFixed(1)} MiB more, ${after.descriptors} descriptors`)
  t.strictSame([...new Set(problems)], [])
  t.ok(growth < mostGrowth, `${growth} MiB`)
  t.ok(after.descriptors <= mostDescriptors, String(after.descriptors))
  await gateway.process.stop()
  upstream.close()
})

function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

async function rest(pid: number): Promise<void> {
  const start = performance.now()
  await setTimeout(restMs.least)
  while (descriptorsOf(pid) > mostDescriptors && performance.now() - start < restMs.most) await setTimeout(200)
}

/** Counts requests by their path. `/ok/large` is answered without end. */
async function startUpstream() {
  const seen = new Map<string, number>()
  const server = createServer((req, res) => {
    const path = req.url ?? ''
    seen.set(path, (seen.get(path) ?? 0) + 1)
    req.resume().on('error', () => {})
    if (path !== '/ok/large') {
      req.on('end', () => res.end('fine'))
      return
    }
    const more = () => {
      while (!res.destroyed && res.write('x'.repeat(16_384)));
    }
    res.on('drain', more)
    more()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const close = () => server.close().closeAllConnections()
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen, close }
}

/** Starts the attack so many times a second until the time is over, and waits for the last. */
async function keepUp(field: Battlefield, attack: Attack, perSecond: number): Promise<void> {
  const start = performance.now()
  const underway = new Set<Promise<void>>()
  for (let turn = 0; ; turn++) {
    const due = start + (turn * 1e3) / perSecond
    if (due > start + seconds * 1e3) break
    await setTimeout(Math.max(0, due - performance.now()))
    if (underway.size >= mostAtOnce) await Promise.race(underway)
    if (performance.now() > start + seconds * 1e3) break
    const done: Promise<void> = attack(field, turn)
      .catch((error: Error) => void field.wrong.push(`${error.message} ${error.cause ?? ''}`))
      .finally(() => underway.delete(done))
    underway.add(done)
  }
  await Promise.all(underway)
}

/** What is not as it must be, now that it is over. */
async function inspect(
  field: Battlefield,
  gateway: StartedGateway,
  seen: ReadonlyMap<string, number>,
): Promise<string[]> {
  const problems: string[] = []
  const health = await fetch(`${field.gateway}/health`)
  if (health.status !== 200) problems.push(`/health answers ${health.status}`)
  for (const [path, count] of seen) {
    if (path.startsWith('/refused')) problems.push(`${path} reached the upstream`)
    if (path.startsWith('/held/') && count > 1) problems.push(`${path} was sent ${count} times`)
    if (path.startsWith('/held/') && field.verdicts.get(Number(path.slice(6))) === 'denied') {
      problems.push(`${path} was sent although it was denied`)
    }
  }
  for (const [turn, verdict] of field.verdicts) {
    if (verdict === 'approved' && !seen.has(`/held/${turn}`)) problems.push(`/held/${turn} was approved and never sent`)
  }
  return [...problems, ...(await inspectTrail(field, gateway.admin))]
}

async function inspectTrail({ gateway, verdicts, upstream }: Battlefield, admin: string): Promise<string[]> {
  const answer = await fetch(`${gateway}/audit/export`, { headers: { Authorization: `Bearer ${admin}` } })
  const lines = (await answer.text()).split('\n').filter(line => line !== '')
  const records = lines.map(line => JSON.parse(line) as AuditRecord)
  const verified = await verifyTrail({
    after: async (seq, limit) => records.filter(record => record.seq > seq).slice(0, limit),
  })
  const problems = verified.ok ? [] : [`the audit trail is broken at ${verified.firstBroken}: ${verified.why}`]
  const urls = new Map(
    records.flatMap(({ action, subject, details }) => (action === 'hitl.suspend' ? [[subject, details['url']]] : [])),
  )
  const told = new Map<unknown, string>()
  for (const { action, subject } of records) {
    if (action === 'hitl.approve' || action === 'hitl.deny') told.set(urls.get(subject), action)
  }
  for (const [turn, verdict] of verdicts) {
    const action = told.get(`${upstream}/held/${turn}`)
    if (action !== (verdict === 'approved' ? 'hitl.approve' : 'hitl.deny')) {
      problems.push(`/held/${turn} was ${verdict}; the audit trail says ${action}`)
    }
  }
  return problems
}
