/** Threats T32 and T33 of SECURITY.md: whoever is slow slows the other side down, and costs no memory. */
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { call } from '../fixtures/call.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { runMain } from '../fixtures/process.ts'
import { testdir } from '../fixtures/testdir.ts'

const streams = 100
const mebibyte = 1_048_576
const chunk = Buffer.alloc(262_144)
/** More than all buffers of the system between two ends of a connection can take. */
const much = 64 * mebibyte

const settings = `
System: { Server: { Http: { Port: 0 } }, RateLimit: { Burst: 10000, MaxInFlight: 1000 } }
Security: { AgentAuth: { TokenRequests: { BcryptCost: 4 } } }
Policy: { AssignOnRegistration: open }
Policies: [{ name: open, default: Allow }]
`
const cwd = testdir(t, { 'gateway.yaml': settings, policies: {} })
const run = runMain(t, ['serve'], { cwd })
const [, port = ''] = await run.shows(/Address +http:\/\/127\.0\.0\.1:(\d+)/)
const here = { host: '127.0.0.1', port: Number(port) }
const login = { ...here, path: '/tokens', method: 'POST', headers: { 'Content-Type': 'application/json' } }
const { text } = await call(login, readFileSync(join(cwd, 'data/bootstrap.json'), 'utf8'))
const headers = { 'Gateway-Authorization': `Bearer ${JSON.parse(text).accessToken}` }

/** Bytes of memory that the gateway holds. */
function resident(): number {
  const [, kibibytes = ''] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${run.child.pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) * 1_024
}

/** Writes as much as is taken, up to a limit; gives how much that was so far. */
function pour(to: ServerResponse | ReturnType<typeof request>): () => number {
  let written = 0
  const more = () => {
    while (written < much && !to.destroyed) {
      written += chunk.length
      if (!to.write(chunk)) return
    }
  }
  to.on('drain', more).on('error', () => {})
  more()
  return () => written
}

const sum = (poured: readonly (() => number)[]) => poured.reduce((total, count) => total + count(), 0)

/** Resolves when a count has stood still for half a second. */
async function settled(count: () => number): Promise<void> {
  let before = -1
  while (before !== count() || before === 0) {
    before = count()
    await new Promise(resolve => setTimeout(resolve, 500))
  }
}

const origin = await startOrigin(t, (req, res) => {
  if (req.url === '/down') downloads.push(pour(res))
  if (req.url === '/up') req.removeAllListeners('data').pause()
})
const downloads: (() => number)[] = []

t.test(`${streams} clients that take nothing hold their upstreams back`, async t => {
  const before = resident()
  const calls = Array.from({ length: streams }, () => {
    const sent = request({ ...here, agent: false, path: `/proxy/${origin.url}/down`, headers })
    sent.on('error', () => {}).on('response', (res: IncomingMessage) => void res.on('error', () => {}).pause())
    sent.end()
    return sent
  })
  while (downloads.length < streams) await new Promise(setImmediate)
  await settled(() => sum(downloads))
  const [written, growth] = [sum(downloads), resident() - before]
  t.ok(written < (streams * much) / 2, `${Math.round(written / mebibyte)} MiB had left the upstreams`)
  t.ok(growth < 96 * mebibyte, `memory grew by ${Math.round(growth / mebibyte)} MiB`)
  for (const sent of calls) sent.destroy()
})

t.test(`${streams} upstreams that take nothing hold their clients back`, async t => {
  const before = resident()
  const seen = origin.seen.length
  const calls = Array.from({ length: streams }, () =>
    request({ ...here, agent: false, method: 'POST', path: `/proxy/${origin.url}/up`, headers }),
  )
  const uploads = calls.map(pour)
  while (origin.seen.length < seen + streams) await new Promise(setImmediate)
  await settled(() => sum(uploads))
  const [written, growth] = [sum(uploads), resident() - before]
  t.ok(written < (streams * much) / 2, `${Math.round(written / mebibyte)} MiB had left the clients`)
  t.ok(growth < 96 * mebibyte, `memory grew by ${Math.round(growth / mebibyte)} MiB`)
  for (const sent of calls) sent.destroy()
  t.equal((await call({ ...here, path: '/health' })).status, 200)
})
