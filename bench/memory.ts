/**
 * Bodies pass in constant memory: `node bench/memory.ts`. 1 GiB goes down and 1 GiB up through a gateway in a process
 * of its own, and its resident memory may not grow by more than 64 MiB. Exit code 1 when it does. Then it tells the memory of
 * a client connection that is idle.
 */
import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { bodyOf } from './lib/bytes.ts'
import { residentBytes } from './lib/cpu.ts'
import { startGateway } from './lib/gateway.ts'
import { chooseCores, describeMachine, machineText } from './lib/machine.ts'
import { readOptions } from './lib/options.ts'
import { benchPolicy } from './lib/roads.ts'
import { figure, table } from './lib/table.ts'
import { startNodeUpstream } from './lib/upstream.ts'

const help = `usage: node bench/memory.ts [options]

  --mib N           length of all bodies of one direction together (1024)
  --streams N       bodies at a time (1)
  --limit N         growth allowed, MiB (64)
  --idle N          idle connections (9000)
`

const { values } = readOptions(help, {
  mib: { type: 'string', default: '1024' },
  streams: { type: 'string', default: '1' },
  limit: { type: 'string', default: '64' },
  idle: { type: 'string', default: '9000' },
})

const mebibyte = 2 ** 20
const sampleEveryMs = 20
const warmupRequests = 2_000
const streams = Number(values.streams)
const limit = Number(values.limit) * mebibyte

interface Target {
  readonly gateway: string
  readonly origin: string
  readonly token: string
}

interface Growth {
  readonly what: string
  readonly seconds: number
  readonly before: number
  readonly highest: number
  readonly after: number
}

await main()
process.exit()

async function main(): Promise<void> {
  const cores = await chooseCores()
  const upstream = await startNodeUpstream(cores.others)
  const settings = { System: { Server: { MaxConnectionsPerAddress: 0 } } }
  const gateway = await startGateway({ policies: [benchPolicy(100)], cores: cores.proxy, settings })
  const target = { gateway: gateway.url, origin: `http://127.0.0.1:${upstream.port}`, token: gateway.token }
  const bytes = Math.ceil((Number(values.mib) * mebibyte) / streams)
  for (let sent = 0; sent < warmupRequests; sent++) await download(target, 1_000)
  const results = [
    await watch(gateway.process.pid, 'download', () => each(() => download(target, bytes))),
    await watch(gateway.process.pid, 'upload', () => each(() => upload(target, bytes))),
  ]
  const met = results.every(({ before, highest }) => highest - before < limit)
  console.log(machineText(await describeMachine(), cores))
  console.log(`\n${values.mib} MiB each way, ${streams} at a time; resident memory of the gateway, MiB:\n`)
  console.log(resultsText(results))
  console.log(`\n${met ? 'passed' : 'FAILED'}: growth is ${met ? '' : 'not '}under ${values.limit} MiB`)
  if (!met) process.exitCode = 1
  const idle = await idleBytes(gateway.process.pid, target)
  console.log(`\n${values.idle} idle connections: ${figure(idle / 1_024)} KiB each`)
}

/** Resident bytes of the gateway for a connection that has had a request and waits for the next one. */
async function idleBytes(pid: number, target: Target): Promise<number> {
  const before = residentBytes(pid)
  const count = Number(values.idle)
  const agents = Array.from({ length: count }, () => new Agent({ keepAlive: true }))
  for (const agent of agents) await download(target, 1_000, agent)
  return (residentBytes(pid) - before) / count
}

async function each(transfer: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: streams }, transfer))
}

async function watch(pid: number, what: string, transfer: () => Promise<void>): Promise<Growth> {
  const before = residentBytes(pid)
  let highest = before
  const sampler = setInterval(() => {
    highest = Math.max(highest, residentBytes(pid))
  }, sampleEveryMs)
  const start = performance.now()
  await transfer().finally(() => clearInterval(sampler))
  const after = residentBytes(pid)
  return { what, seconds: (performance.now() - start) / 1e3, before, highest: Math.max(highest, after), after }
}

/** Reads an answer of that length and drops it. */
async function download(target: Target, bytes: number, agent: Agent | false = false): Promise<void> {
  const request = httpRequest(`${target.gateway}/proxy/${target.origin}/bytes/${bytes}`, {
    agent,
    headers: headersOf(target),
  })
  request.end()
  expectBytes(await readAnswer(request), bytes)
}

async function upload(target: Target, bytes: number): Promise<void> {
  const headers = { ...headersOf(target), 'Content-Length': String(bytes) }
  const request = httpRequest(`${target.gateway}/proxy/${target.origin}/`, { agent: false, method: 'POST', headers })
  const answer = readAnswer(request)
  await pipeline(bodyOf(bytes), request)
  const { text } = await answer
  expectBytes({ received: Number(text) }, bytes)
}

function headersOf({ token }: Target): Record<string, string> {
  return { 'Gateway-Authorization': `Bearer ${token}` }
}

async function readAnswer(request: ReturnType<typeof httpRequest>): Promise<{ received: number; text: string }> {
  const [response] = await once(request, 'response')
  let received = 0
  let text = ''
  for await (const data of response as AsyncIterable<Buffer>) {
    received += data.length
    if (text.length < 1_000) text = (text + data.toString('latin1')).slice(0, 1_000)
  }
  if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${text}`)
  return { received, text }
}

function expectBytes({ received }: { received: number }, bytes: number): void {
  if (received !== bytes) throw new Error(`${received} bytes arrived of ${bytes}`)
}

function resultsText(results: readonly Growth[]): string {
  const mib = (bytes: number) => figure(bytes / mebibyte, 1)
  const rows = results.map(({ what, seconds, before, highest, after }) => [
    what,
    mib(before),
    mib(highest),
    mib(after),
    mib(highest - before),
    figure(Number(values.mib) / seconds),
  ])
  return table(['', 'before', 'highest', 'after', 'growth', 'MiB/s'], rows)
}
