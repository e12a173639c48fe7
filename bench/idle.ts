/**
 * The race between a request and the idle limit of its upstream: `node bench/idle.ts`. Real servers close idle
 * connections at just the pace of the requests. Exit code 1 when a GET is answered with anything but 200.
 */
import { writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { startGateway } from './lib/gateway.ts'
import { readOptions } from './lib/options.ts'
import { freePort, type Running, run, start, temporaryFolder, versionOf } from './lib/processes.ts'
import { table } from './lib/table.ts'
import { startNginx } from './peers/nginx.ts'

const help = `usage: node bench/idle.ts [options]

  --rounds N     GETs of each of 100 callers, for each server (30)
  --no-retry     with Proxy:RetryIdempotent: false
`

const { values } = readOptions(help, {
  rounds: { type: 'string', default: '30' },
  'no-retry': { type: 'boolean', default: false },
})

/** Callers that send at the same time: the connections they took are idle together. */
const lanes = 100
/** How much longer or shorter than the idle limit callers wait, in turn, milliseconds. */
const offsets = [0, -1, 1, -2, 2, -5, 5, -10, 10]

interface Server {
  readonly name: string
  /** Idle limit, seconds. */
  readonly seconds: number
  readonly needs: readonly string[]
  readonly start: (seconds: number) => Promise<{ readonly port: number; readonly process: Running }>
}

const nginx: Server['start'] = seconds => startNginx(`keepalive_timeout ${seconds}s; return 200 ok;`, undefined)

async function startCommand(file: string, text: string, commandOf: (port: number) => readonly string[]) {
  const [cwd, port] = [temporaryFolder(), await freePort()]
  writeFileSync(join(cwd, file), text)
  const child = start({ command: commandOf(port), cwd })
  await child.listensOn(port)
  return { port, process: child }
}

const wsgi = `def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]
`
const asgi = `async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
`
const gunicorn: Server['start'] = seconds =>
  startCommand('wsgi.py', wsgi, port => [
    ...['gunicorn', '--worker-class=gthread', '--threads=128', `--keep-alive=${seconds}`],
    ...[`--bind=127.0.0.1:${port}`, 'wsgi:app'],
  ])
const uvicorn: Server['start'] = seconds =>
  startCommand('asgi.py', asgi, port => [
    ...['uvicorn', '--lifespan=off', '--log-level=warning', `--timeout-keep-alive=${seconds}`],
    ...[`--port=${port}`, 'asgi:app'],
  ])

async function go(seconds: number) {
  const [cwd, port] = [temporaryFolder(), await freePort()]
  const handler = 'http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("ok")) })'
  const server = `http.Server{Addr: "127.0.0.1:${port}", IdleTimeout: ${seconds} * time.Second, Handler: ${handler}}`
  const source = join(cwd, 'main.go')
  writeFileSync(
    source,
    `package main\n\nimport (\n"net/http"\n"time"\n)\n\nfunc main() {\ns := &${server}\ns.ListenAndServe()\n}\n`,
  )
  await run(['go', 'build', '-o', join(cwd, 'server'), source])
  const child = start({ command: [join(cwd, 'server')], cwd })
  await child.listensOn(port)
  return { port, process: child }
}

const servers: readonly Server[] = [
  ...[1, 2, 3].map(seconds => ({ name: 'nginx', seconds, needs: ['nginx', '-v'], start: nginx })),
  { name: 'gunicorn', seconds: 2, needs: ['gunicorn', '--version'], start: gunicorn },
  { name: 'uvicorn', seconds: 1, needs: ['uvicorn', '--version'], start: uvicorn },
  { name: 'go', seconds: 1, needs: ['go', 'version'], start: go },
]

process.exitCode = (await main(Number(values.rounds))) ? 0 : 1
process.exit()

async function main(rounds: number): Promise<boolean> {
  const settings = { Proxy: { RetryIdempotent: !values['no-retry'] } }
  const rows: string[][] = []
  let good = true
  // One after the other, each with a gateway of its own: the retries counted are those of one server.
  for (const server of servers) {
    const version = await versionOf(server.needs)
    if (version === undefined) {
      process.stdout.write(`${server.name} is not installed\n`)
      continue
    }
    const gateway = await startGateway({ policies: [{ name: 'all', default: 'Allow' }], cores: undefined, settings })
    const upstream = await server.start(server.seconds)
    const statuses = await paced(`${gateway.url}/proxy/http://127.0.0.1:${upstream.port}/`, gateway.token, {
      rounds,
      ms: server.seconds * 1_000,
    })
    const retries = await retriesOf(gateway.url, gateway.admin)
    await Promise.all([gateway.process.stop(), upstream.process.stop()])
    const count = (status: number) => String(statuses.get(status) ?? 0)
    good &&= statuses.get(200) === rounds * lanes
    const others = [...statuses.keys()].filter(status => ![200, 502, 503].includes(status))
    rows.push([
      server.name,
      /\d+(?:\.\d+)+/.exec(version)?.[0] ?? '',
      `${server.seconds} s`,
      ...[200, 502, 503].map(count),
      others.join(' '),
      retries,
    ])
  }
  const head = ['server', 'version', 'idle limit', '200', '502', '503', 'other', 'sent again']
  process.stdout.write(`\n${table(head, rows)}\n`)
  return good
}

/** How often each status came. 0 is a connection that broke. */
async function paced(url: string, token: string, { rounds, ms }: { readonly rounds: number; readonly ms: number }) {
  const agent = new Agent({ keepAlive: true, maxSockets: lanes })
  const headers = { 'Gateway-Authorization': `Bearer ${token}` }
  const statuses = new Map<number, number>()
  const send = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const note = (status: number) => {
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      resolve()
    }
    get(url, { agent, headers }, res => res.resume().on('end', () => note(res.statusCode ?? 0))).on('error', () =>
      note(0),
    )
    return promise
  }
  const pace = async () => {
    for (let round = 0; round < rounds; round++) {
      await send()
      await setTimeout(ms + offsets[round % offsets.length]!)
    }
  }
  await Promise.all(Array.from({ length: lanes }, pace))
  agent.destroy()
  return statuses
}

async function retriesOf(url: string, admin: string): Promise<string> {
  const page = await fetch(`${url}/metrics`, { headers: { Authorization: `Bearer ${admin}` } })
  return /^agent_gateway_upstream_retries_total (\d+)/m.exec(await page.text())?.[1] ?? '-'
}
