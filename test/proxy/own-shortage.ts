/** Threats T30 and T31 of SECURITY.md: a shortage of the gateway's own is no failure of the upstream, and passes. */
import { spawnSync } from 'node:child_process'
import { request } from 'node:http'
import t from 'tap'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'
import { scrape } from '../fixtures/scrape.ts'
import { type Served, startServed } from '../fixtures/served.ts'
import { testdir } from '../fixtures/testdir.ts'

const conditions = [{ field: 'input.body.kind', operator: 'eq', value: 'bad' }]
const settings = (threads: number) => ({
  System: {
    Server: { Http: { Port: 0 }, Threads: threads },
    RateLimit: { RequestsPerMinute: 10_000, Burst: 10_000, MaxInFlight: 1_000 },
  },
  Security: { AgentAuth: { TokenRequests: { BcryptCost: 4 } } },
  Policies: [{ name: 'reads', default: 'Allow', rules: [{ name: 'bad', effect: 'Deny', conditions }] }],
})

async function agentOf({ call, tokenOf, admin }: Served): Promise<string> {
  const registration = { name: 'bot', ownerId: 'team', clientSecret: 'secret of the bot', policyName: 'reads' }
  const { id: agentId } = (await call('POST', '/agents', admin, registration)).json
  return tokenOf({ agentId, clientSecret: registration.clientSecret })
}

/** Standard input, output and errors are always open: this limit leaves no number free, whatever is closed meanwhile. */
const noDescriptor = 3

for (const threads of [1, 2]) {
  t.test(`without descriptors requests are refused as busy, and no circuit opens, ${threads} threads`, async t => {
    const origin = await startOrigin(t, (_req, res) => void res.writeHead(200, { Connection: 'close' }).end('ok'))
    const served = await startServed(t, { cwd: testdir(t, { 'gateway.yaml': JSON.stringify(settings(threads)) }) })
    const token = await agentOf(served)
    const { pid } = served.run.child
    // Over a connection that is there already: no new one could be accepted.
    const client = await openRaw(t, Number(new URL(served.url).port))
    let answers = 0
    const call = async (path: string, name: string, bearer: string): Promise<string> => {
      const from = client.text().length
      client.write(`GET ${path} HTTP/1.1\r\nHost: g\r\n${name}: Bearer ${bearer}\r\n\r\n`)
      answers += 1
      const heads = new RegExp(`(?:HTTP/1\\.1 [^]*?\\r\\n\\r\\n[^]*?){${answers}}`)
      await client.until(heads)
      return client.text().slice(from)
    }
    const proxied = () => call(`/proxy/${origin.url}/`, 'Gateway-Authorization', token)
    t.match(await proxied(), /^HTTP\/1\.1 200 /)

    spawnSync('prlimit', ['--pid', String(pid), `--nofile=${noDescriptor}:`])
    for (let i = 0; i < 12; i++) {
      const refused = await proxied()
      t.match(refused, /^HTTP\/1\.1 503 /)
      t.match(refused, /Gateway-Error: busy/)
      t.match(refused, /Retry-After: 1/)
    }
    t.equal(origin.seen.length, 1)

    spawnSync('prlimit', ['--pid', String(pid), '--nofile=4096:'])
    t.match(await proxied(), /^HTTP\/1\.1 200 /, 'at once')
    const page = scrape((await served.call('GET', '/metrics', served.admin)).text)
    t.equal(page.values.get('agent_gateway_circuits_open'), 0)
    t.equal(page.values.get('agent_gateway_limits_reached_total{limit="descriptors"}'), 12)
    t.match(served.run.out(), /"limit":"descriptors"/)
  })
}

t.test('100 bodies of 1 MB that a rule reads do not end a process with a heap of 64 MB', async t => {
  const origin = await startOrigin(t, (req, res) => void req.resume().once('end', () => res.end('ok')))
  const cwd = testdir(t, { 'gateway.yaml': JSON.stringify(settings(1)) })
  const served = await startServed(t, { cwd, node: ['--max-old-space-size=64'] })
  const tokens = await Promise.all(Array.from({ length: 4 }, () => agentOf(served)))
  const body = JSON.stringify({ kind: 'good', text: 'x'.repeat(2 ** 20) })
  /** Sends all but the last byte of a body, which comes with `end`. The answer, status and code, may come before. */
  const post = (token = '') => {
    const { promise, resolve } = Promise.withResolvers<string>()
    const length = Buffer.byteLength(body)
    const headers = {
      'Gateway-Authorization': `Bearer ${token}`,
      'Content-Type': 'application/json',
      'Content-Length': length,
    }
    const sending = request(`${served.url}/proxy/${origin.url}/`, { method: 'POST', headers, agent: false }, answer => {
      answer.resume()
      resolve(`${answer.statusCode} ${answer.headers['gateway-error'] ?? ''}`)
    })
    sending.on('error', error => resolve(error.message))
    sending.write(body.slice(0, -1))
    return { answer: promise, end: () => sending.end(body.slice(-1)) }
  }
  // None can be decided and freed before the memory for all of them is full, however fast they come.
  const posts = Array.from({ length: 100 }, (_, i) => post(tokens[i % tokens.length]))
  t.equal(await Promise.race(posts.map(({ answer }) => answer)), '503 busy')
  for (const { end } of posts) end()
  const answers = await Promise.all(posts.map(({ answer }) => answer))
  const kinds = new Set(answers)
  t.ok(kinds.has('200 '), 'some pass')
  t.ok(kinds.has('503 busy'), 'and some are refused')
  t.equal(kinds.size, 2, [...kinds].join(', '))
  t.equal(served.run.child.exitCode, null)
  const last = post(tokens[0])
  last.end()
  t.equal(await last.answer, '200 ', 'and afterwards all pass')
})
