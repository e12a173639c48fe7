/**
 * Which functions one request calls: `node bench/calls.ts`. V8 counts the calls of each function in the thread that serves,
 * while one road is under load; what is called in fewer than half of the requests is left out.
 */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beginCount, type Called, counterOption, filesOf, takeCount } from './lib/called.ts'
import { createSender } from './lib/load.ts'
import { chooseCores } from './lib/machine.ts'
import { readOptions } from './lib/options.ts'
import { roadCalled, startUpstreamOf } from './lib/roads.ts'
import { figure, table } from './lib/table.ts'

const help = `usage: node bench/calls.ts [options]

  --road NAME     gateway, gateway-1000, post, post-body-rule, held, ... (gateway)
  --root FOLDER   sources of the gateway (this project)
  --seconds N     length of the load (3), after as long a warm-up
  --functions     prints each function too
`

const { values } = readOptions(help, {
  road: { type: 'string', default: 'gateway' },
  root: { type: 'string', default: fileURLToPath(new URL('..', import.meta.url)) },
  seconds: { type: 'string', default: '3' },
  functions: { type: 'boolean', default: false },
})

await main()
process.exit()

async function main(): Promise<void> {
  const road = roadCalled(values.road)
  const root = resolve(values.root)
  const cores = await chooseCores()
  const upstream = await startUpstreamOf(road, cores.others)
  const { request, process: proxy } = await road.open({
    ...{ upstream, cores: cores.proxy, root },
    nodeOptions: counterOption,
  })
  if (proxy === undefined) throw new Error(`${values.road} has no process to count in`)
  const sender = await createSender(cores.others)
  const load = { request, connections: 16, seconds: Number(values.seconds) }
  await sender.send(load)
  await beginCount(proxy.pid)
  const { requests } = await sender.send(load)
  const called = await takeCount(proxy.pid, root, requests)
  await proxy.stop(30_000)
  print(called, requests)
}

function callsOf(called: readonly Called[]): number {
  return called.reduce((sum, { calls }) => sum + calls, 0)
}

function print(called: readonly Called[], requests: number): void {
  const parts = [
    ...Map.groupBy(called, ({ file }) => (file.includes('/') ? file.slice(0, file.lastIndexOf('/')) : file)),
  ]
  const rows = parts
    .map(([part, own]) => ({ part, calls: callsOf(own), functions: own.length, files: filesOf(own).length }))
    .sort((left, right) => right.calls - left.calls)
  console.log(`${values.road}: ${requests} requests\n`)
  console.log(
    table(
      ['part', 'calls', 'functions', 'files'],
      [
        ...rows,
        { part: 'in all', calls: callsOf(called), functions: called.length, files: filesOf(called).length },
      ].map(({ part, calls, functions, files }) => [part, figure(calls), String(functions), String(files)]),
    ),
  )
  if (!values.functions) return
  const each = [...called].sort((left, right) => right.calls - left.calls || (left.file < right.file ? -1 : 1))
  console.log(
    `\n${table(
      ['function', 'calls'],
      each.map(({ file, name, calls }) => [`${file} ${name}`, figure(calls)]),
    )}`,
  )
}
