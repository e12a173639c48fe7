/** What the forward proxy costs: `node bench/forward.ts`. bench/README.md says what is measured and how. */
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openConnection } from './lib/connection.ts'
import { cpuExactly, residentBytes } from './lib/cpu.ts'
import { type ForwardSetup, forwardGroups, intercepted, startForwardSetup } from './lib/forward-roads.ts'
import type { Outcome } from './lib/goals.ts'
import type { IdleOrders } from './lib/idle-tunnels.ts'
import { chooseCores, describeMachine, machineText } from './lib/machine.ts'
import { readOptions } from './lib/options.ts'
import { start } from './lib/processes.ts'
import { outcomesText } from './lib/report.ts'
import { watchOthers } from './lib/rounds.ts'
import { measureSlices } from './lib/sliced.ts'
import { quantile, ratios, spreadOf } from './lib/stats.ts'
import { figure, table } from './lib/table.ts'

const help = `usage: node bench/forward.ts [options]

Compares calls through the forward proxy with calls under /proxy/ of the same gateway, and with HAProxy, mitmproxy and
Squid, which open TLS too, where they are installed.

  --slices N     slices of each contestant, taken in turn (60)
  --warmup N     CPU time of each program before anything counts, seconds (3)
  --idle N       idle tunnels that are held (10000)
  --only TEXT    the groups alone whose title contains this
  --built        the gateway from the built package instead of its sources
`
const { values } = readOptions(help, {
  slices: { type: 'string', default: '60' },
  warmup: { type: 'string', default: '3' },
  idle: { type: 'string', default: '10000' },
  only: { type: 'string', default: '' },
  built: { type: 'boolean', default: false },
})

/** CPU time of one request in that of another, at most. */
const goals = [
  { in: 'kept connections, https', of: 'intercepted', against: '/proxy', atMost: 1.15 },
  { in: 'kept connections, https', of: 'intercepted', against: 'haproxy', atMost: 1.5 },
  { in: 'kept connections, https', of: 'intercepted', against: 'mitmproxy', atMost: 0.1 },
  { in: 'kept connections, http ', of: 'absolute form', against: '/proxy', atMost: 1.02 },
  { in: 'a new connection', of: 'intercepted', against: '/proxy', atMost: 4.5 },
  { in: 'a new connection', of: 'intercepted', against: 'haproxy', atMost: 2 },
  { in: 'a new connection', of: 'intercepted', against: 'mitmproxy', atMost: 0.2 },
  { in: 'a new connection', of: 'intercepted, resumed', against: 'intercepted', atMost: 0.75 },
] as const

const progress = (text: string): void => {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}

await main()
process.exit()

async function main(): Promise<void> {
  const cores = await chooseCores()
  const machine = await describeMachine()
  progress('starting')
  const setup = await startForwardSetup(cores, values.built)
  const { gateway, secure, plain, peers } = setup
  const running = [gateway, secure, plain, ...Object.values(peers)].map(({ process }) => process.pid)
  const othersShare = watchOthers(running, machine.cores)
  const outcomes: Outcome[] = []
  const rows: string[][] = []
  for (const { about, contestants, ...size } of forwardGroups(setup)) {
    if (!about.includes(values.only)) continue
    progress(about)
    const slices = { ...size, slices: Number(values.slices), warmup: Number(values.warmup), cores: cores.others }
    const cpu = await measureSlices(contestants, slices)
    for (const [name, all] of cpu) rows.push([`${about}: ${name}`, ...cpuFigures(all)])
    outcomes.push(...goals.filter(goal => about.startsWith(goal.in)).flatMap(goal => judge(goal, cpu)))
  }
  progress('first calls of hosts')
  outcomes.push(await measureFirstCalls(setup))
  progress('idle tunnels')
  if (Number(values.idle) > 0) outcomes.push(...(await measureIdle(setup, cores.others)))
  const others = othersShare()
  progress('')
  console.log(`${machineText(machine, cores)}
${Object.values(peers)
  .map(({ version }) => version)
  .join('\n')}
other processes took ${figure(others * 100)} % of the machine meanwhile

${table(['CPU us/request', 'least', 'median', 'quarters'], rows)}

${outcomesText(outcomes)}`)
}

function cpuFigures(all: readonly number[]): readonly string[] {
  const { median, low, high } = spreadOf(all)
  return [figure(Math.min(...all), 1), figure(median, 1), `${figure(low, 1)}-${figure(high, 1)}`]
}

function judge(goal: (typeof goals)[number], cpu: ReadonlyMap<string, readonly number[]>): readonly Outcome[] {
  const [of, against] = [cpu.get(goal.of), cpu.get(goal.against)]
  if (of === undefined || against === undefined) return []
  const value = spreadOf(ratios(of, against))
  const what = `${goal.of} of ${goal.against}, ${goal.in}`
  return [{ what, value, unit: 'x', limit: goal.atMost, met: value.median <= goal.atMost }]
}

/** What a certificate costs: a handshake for a host that is new, less one for a host that is known. */
async function measureFirstCalls(setup: ForwardSetup): Promise<Outcome> {
  const { process: gateway } = setup.gateway
  const { through } = intercepted(setup)
  const spent = async (host: string): Promise<number> => {
    const before = cpuExactly(gateway.pid)
    const request = { url: `https://${host}/`, method: 'GET', headers: {}, ...(through && { through }) }
    await new Promise<void>(resolve => {
      openConnection(request, connection => {
        connection.destroy()
        resolve()
      })
    })
    await setTimeout(5)
    return (cpuExactly(gateway.pid) - before) / 1e3
  }
  await spent('known.bench')
  const known: number[] = []
  const fresh: number[] = []
  for (let turn = 0; turn < 80; turn++) {
    known.push(await spent('known.bench'))
    fresh.push(await spent(`host-${turn}.bench`))
  }
  const value = spreadOf(fresh.map((ms, turn) => ms - (known[turn] ?? 0)))
  return { what: 'CPU time of the certificate of a host', value, unit: 'ms', limit: 3, met: value.median <= 3 }
}

async function measureIdle(setup: ForwardSetup, cores: string | undefined): Promise<readonly Outcome[]> {
  const { gateway } = setup
  const count = Number(values.idle)
  const before = residentBytes(gateway.process.pid)
  const orders: IdleOrders = { request: intercepted(setup), count }
  const script = fileURLToPath(new URL('lib/idle-tunnels.ts', import.meta.url))
  const holder = start({ command: [process.execPath, script, JSON.stringify(orders)], cores })
  await holder.shows(/holding/)
  await setTimeout(3_000)
  const each = (residentBytes(gateway.process.pid) - before) / count / 1_024
  const looks: number[] = []
  for (let look = 0; look < 200; look++) {
    const since = performance.now()
    await (await fetch(`${gateway.url}/health`)).arrayBuffer()
    looks.push(performance.now() - since)
    await setTimeout(20)
  }
  await holder.stop()
  const health = quantile(looks, 0.99)
  return [
    { what: `memory of an idle tunnel, of ${count}`, value: spreadOf([each]), unit: 'KiB', limit: 50, met: each <= 50 },
    {
      what: `/health with ${count} idle tunnels, p99`,
      value: spreadOf([health]),
      unit: 'ms',
      limit: 50,
      met: health <= 50,
    },
  ]
}
