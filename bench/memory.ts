/** Memory of a client connection that has had a request and waits for the next one: `node bench/memory.ts`. */

import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { residentBytes } from './lib/cpu.ts'
import { startGateway } from './lib/gateway.ts'
import { chooseCores, describeMachine, machineText } from './lib/machine.ts'
import { readOptions } from './lib/options.ts'
import { benchPolicy } from './lib/rules.ts'
import { figure } from './lib/table.ts'
import { startNodeUpstream } from './lib/upstream.ts'

const help = `usage: node bench/memory.ts [options]

  --idle N          idle connections (9000)
`

const { values } = readOptions(help, { idle: { type: 'string', default: '9000' } })

const warmupRequests = 2_000
const count = Number(values.idle)

const cores = await chooseCores()
const upstream = await startNodeUpstream(cores.others)
const settings = { System: { Server: { MaxConnectionsPerAddress: 0 } } }
const gateway = await startGateway({ policies: [benchPolicy(100)], cores: cores.proxy, settings })
for (let sent = 0; sent < warmupRequests; sent++) await ask(false)
const before = residentBytes(gateway.process.pid)
for (let opened = 0; opened < count; opened++) await ask(new Agent({ keepAlive: true }))
const each = (residentBytes(gateway.process.pid) - before) / count
console.log(machineText(await describeMachine(), cores))
console.log(`\n${count} idle connections: ${figure(each / 1_024)} KiB each`)
process.exit()

async function ask(agent: Agent | false): Promise<void> {
  const headers = { 'Gateway-Authorization': `Bearer ${gateway.token}` }
  const request = httpRequest(`${gateway.url}/proxy/${upstream.url}/bytes/1000`, { agent, headers })
  request.end()
  const [response] = await once(request, 'response')
  await buffer(response)
  if (response.statusCode !== 200) throw new Error(String(response.statusCode))
}
