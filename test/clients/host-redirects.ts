/** The table of docs/virtual-hosts.md: what keeps the key of a client that follows a redirect to another virtual host. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import t from 'tap'
import { Agent, fetch as fetchWith } from 'undici'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { runPython } from '../fixtures/python.ts'
import { withSystem } from '../fixtures/system.ts'

const run = promisify(execFile)
const second = await startOrigin(t, (_req, res) => void res.end('the second'))
const first = await startOrigin(t, (req, res) => res.writeHead(302, { Location: second.url + req.url }).end())
const gateway = await startGateway(t, {
  config: {
    Hosts: [
      { Host: 'one.gateway.test', Upstream: first.url },
      { Host: 'two.gateway.test', Upstream: second.url },
    ],
  },
})
const agent = await gateway.agent()
const { key } = JSON.parse((await gateway.manage('POST', `/agents/${agent.id}/keys`, { name: 'k' })).text)
const bearer = `Bearer ${key}`
/** The gateway takes requests for its own names as a proxy would: no name has to be looked up. */
const env = { ...process.env, http_proxy: gateway.url, no_proxy: '' }
const url = 'http://one.gateway.test/x'
const dispatcher = new Agent({
  connect: { lookup: (_host, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]) },
})
t.teardown(() => dispatcher.close())

const python = (name: string, follows: string) => (field: string) =>
  runPython(
    name,
    `import ${name}; print(${name}.get("${url}", headers={"${field}": "${bearer}"}${follows}).status_code)`,
    {
      env,
    },
  )
const curl =
  (...more: string[]) =>
  async (field: string) => {
    const args = ['-sL', ...more, '-o', '/dev/null', '-w', '%{http_code}', '-H', `${field}: ${bearer}`, url]
    return (await run('curl', args, { env })).stdout
  }

/** Each prints the status of the last answer. */
const clients: Readonly<Record<string, (field: string) => Promise<string>>> = {
  fetch: async field => {
    const answer = await fetchWith(url.replace('/x', `:${gateway.port}/x`), {
      headers: { [field]: bearer },
      dispatcher,
    })
    return String(answer.status)
  },
}
const systemClients: typeof clients = {
  curl: curl(),
  requests: python('requests', ''),
  httpx: python('httpx', ', follow_redirects=True'),
}

for (const [name, call] of Object.entries({ ...clients, ...(withSystem && systemClients) })) {
  t.test(`${name} loses a key in Authorization and keeps one in Gateway-Authorization`, async t => {
    t.equal((await call('Authorization')).trim(), '401')
    t.equal(second.seen.length, 0)
    t.equal((await call('Gateway-Authorization')).trim(), '200')
    t.equal(second.seen.length, 1)
    t.notMatch(JSON.stringify(second.seen), key)
    second.seen.length = 0
  })
}

if (withSystem) {
  t.test('curl keeps it with --location-trusted', async t => {
    t.equal(await curl('--location-trusted')('Authorization'), '200')
    t.notMatch(JSON.stringify(second.seen), key)
    second.seen.length = 0
  })

  t.test('git sends it with http.extraHeader', async t => {
    const config = ['-c', `http.extraHeader=Gateway-Authorization: ${bearer}`]
    await run('git', [...config, 'ls-remote', 'http://one.gateway.test/code.git'], { env }).catch(() => {})
    t.match(second.seen, [{ target: '/code.git/info/refs?service=git-upload-pack' }])
  })
}

t.test('the page names these clients', async t => {
  const page = readFileSync(new URL('../../docs/virtual-hosts.md', import.meta.url), 'utf8')
  const [, table = ''] = page.split('## Redirects to another host')
  for (const name of [...Object.keys({ ...clients, ...systemClients }), '--location-trusted', 'http.extraHeader'])
    t.match(table, name)
})
