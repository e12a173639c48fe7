/**
 * Resident memory of the gateway: of a client connection that has had a request and waits for the next one, or of one road before,
 * under and after its load: `node bench/memory.ts`.
 */

import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { type ResidentParts, residentBytes, residentParts } from './lib/cpu.ts'
import { startGateway } from './lib/gateway.ts'
import { createSender } from './lib/load.ts'
import { chooseCores, describeMachine, machineText } from './lib/machine.ts'
import { readOptions } from './lib/options.ts'
import { roadCalled, startUpstreamOf } from './lib/roads.ts'
import { benchPolicy } from './lib/rules.ts'
import { figure } from './lib/table.ts'
import { startNodeUpstream } from './lib/upstream.ts'

const help = `usage: node bench/memory.ts [options]

  --idle N          idle connections (9000)
  --road A,B        these roads of npm run bench instead, of the built package, some 50 s each
  --seconds N       length of their load (9)
`

const { values } = readOptions(help, {
  idle: { type: 'string', default: '9000' },
  road: { type: 'string' },
  seconds: { type: 'string', default: '9' },
})

const warmupRequests = 2_000
/** In which the thread of secrets, which made the token, ends: it is not part of a load. */
const settleMs = 22_000
/** In which memory is given back. */
const restMs = 10_000

const cores = await chooseCores()
console.log(`${machineText(await describeMachine(), cores)}\n`)
if (values.road === undefined) await measureIdle(Number(values.idle))
else for (const name of values.road.split(',')) await measureRoad(name)
process.exit()

async function measureIdle(count: number): Promise<void> {
  const upstream = await startNodeUpstream(cores.others)
  const settings = { System: { Server: { MaxConnectionsPerAddress: 0 } } }
  const gateway = await startGateway({ policies: [benchPolicy(100)], cores: cores.proxy, settings })
  const ask = async (agent: Agent | false): Promise<void> => {
    const headers = { 'Gateway-Authorization': `Bearer ${gateway.token}` }
    const request = httpRequest(`${gateway.url}/proxy/${upstream.url}/bytes/1000`, { agent, headers })
    request.end()
    const [response] = await once(request, 'response')
    await buffer(response)
    if (response.statusCode !== 200) throw new Error(String(response.statusCode))
  }
  for (let sent = 0; sent < warmupRequests; sent++) await ask(false)
  const before = residentBytes(gateway.process.pid)
  for (let opened = 0; opened < count; opened++) await ask(new Agent({ keepAlive: true }))
  const each = (residentBytes(gateway.process.pid) - before) / count
  console.log(`${count} idle connections: ${figure(each / 1_024)} KiB each`)
}

async function measureRoad(name: string): Promise<void> {
  const road = roadCalled(name)
  const upstream = await startUpstreamOf(road, cores.others)
  const { process, request } = await road.open({ upstream, cores: cores.proxy, built: true })
  if (process === undefined) throw new Error(`${name} has no process to measure`)
  await setTimeout(settleMs)
  const idle = residentParts(process.pid)
  const sender = await createSender(cores.others)
  const load = { request, connections: road.work?.connections ?? 64, seconds: Number(values.seconds) }
  const { requests } = await sender.send(load)
  const under = residentParts(process.pid)
  await setTimeout(restMs)
  const after = residentParts(process.pid)
  console.log(`${name}: idle ${textOf(idle)}; after ${requests} requests ${textOf(under)}; 10 s later ${textOf(after)}`)
  await Promise.all([process.stop(), upstream.process.stop()])
}

function textOf({ files, malloc, other }: ResidentParts): string {
  const [all, ...parts] = [files + malloc + other, files, malloc, other].map(bytes => (bytes / 2 ** 20).toFixed(0))
  return `${all} MiB (${parts.join(' + ')})`
}
