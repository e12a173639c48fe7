/** Requests that wait for a connection with the token of an account that ends meanwhile, or is another one. Threat T91. */
import t from 'tap'
import { startAccountProvider } from '../fixtures/account-provider.ts'
import { fetchDocumented } from '../fixtures/documented.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { secureCaFile, secureName, startSecureOrigin } from '../fixtures/origin.ts'

const provider = await startAccountProvider(t)
const slow: (() => void)[] = []
let isQuick = false
const upstream = await startSecureOrigin(t, (req, res) => {
  if (req.url === '/slow' && !isQuick) slow.push(() => res.end('slow'))
  else res.end(req.headers.authorization)
})
const gateway = await startGateway(t, {
  lookup: async () => ['127.0.0.1'],
  alone: 'each gateway has a line of requests that wait for a connection',
  config: {
    System: { PublicUrl: 'https://gateway.example', Server: { Threads: 1 } },
    Proxy: { CaFile: secureCaFile, MaxConnectionsPerOrigin: 1 },
    Policies: [
      { name: 'allow-all', default: 'Allow' },
      { name: 'asks', default: 'Hitl' },
    ],
    Credentials: [{ Name: 'mail', Type: 'Connect', Issuer: provider.url, ClientId: 'gateway', ClientAuth: 'None' }],
    Upstreams: [{ Host: `${secureName}:${upstream.port}`, Credential: 'mail', Paths: ['/mail'] }],
  },
})
const agent = await gateway.agent()
const other = await gateway.agent()

async function connect(login: string, { id: agentId } = agent): Promise<void> {
  const { text } = await gateway.manage('POST', '/credentials/mail/connect', { agentId })
  const { url, session } = JSON.parse(text)
  const given = { session, ...provider.consent(url, login) }
  t.equal((await gateway.manage('POST', '/credentials/mail/connected', given)).status, 200)
}

/** Resolves when so many requests wait for the connection: each has its token by then. */
const inLine = (count: number) =>
  eventually(
    async () => (await gateway.manage('GET', '/metrics')).text,
    text => text.includes(`agent_gateway_upstream_waiting ${count}\n`),
  )

/** What a request gets that waits for the only connection while something happens. */
async function waiting(
  meanwhile: () => Promise<unknown>,
  { token } = agent,
): Promise<{ readonly status: number; readonly text: string }> {
  const occupied = gateway.proxy(other.token, `${upstream.url}/slow`)
  await eventually(
    () => slow.length,
    count => count === 1,
  )
  const waits = gateway.proxy(token, `${upstream.url}/mail`, { headers: { 'Idempotency-Key': 'one' } })
  await inLine(1)
  await meanwhile()
  slow.pop()?.()
  await (await occupied).text()
  const answer = await waits
  return { status: answer.status, text: await answer.text() }
}

t.test('once an account is disconnected, a request that waited is not sent with its token', async t => {
  await connect('first')
  t.match(await waiting(async () => {}), { status: 200, text: /canary-first/ })
  upstream.seen.length = 0
  const ended = await waiting(() => gateway.manage('DELETE', `/credentials/mail/token?agentId=${agent.id}`))
  t.match(ended, { status: 403, text: /credential_needed/ })
  t.notMatch(JSON.stringify(upstream.seen.map(({ headers }) => headers)), /canary/)
})

t.test('once another account is connected, a request that waited is sent with the token of that one', async t => {
  await connect('second')
  t.match(await waiting(() => connect('third')), { status: 200, text: /canary-third/ })
})

t.test('a request that a grant lets pass once is sent although it begins again', async t => {
  const [asks, reviewer] = [await gateway.agent({ policyName: 'asks' }), await gateway.agent({ roles: ['reviewer'] })]
  await connect('first', asks)
  const held = await gateway.proxy(asks.token, `${upstream.url}/mail`)
  await held.body?.cancel()
  const approved = await fetchDocumented(`${gateway.url}/hitl/${held.headers.get('gateway-hitl-id')}/approve`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${reviewer.token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ grant: { minutes: 10, maxUses: 1 } }),
  })
  t.match(await approved.text(), /canary-first/)
  t.match(await waiting(() => connect('second', asks), asks), { status: 200, text: /canary-second/ })
  const id = approved.headers.get('gateway-hitl-grant')
  const { items } = JSON.parse((await gateway.manage('GET', `/audit?subject=${id}`)).text)
  t.match(items, [{ action: 'hitl.grant.use', details: { uses: 1 } }, { action: 'hitl.grant' }])
  t.equal(items.length, 2, 'one use')
})

t.test('a request whose account changes again and again while it waits is told to come again', async t => {
  await connect('first')
  upstream.seen.length = 0
  // They take turns with it.
  const count = 20
  const others = Array.from({ length: count }, () => gateway.proxy(other.token, `${upstream.url}/slow`))
  await inLine(count - 1)
  let answer: Response | undefined
  void gateway.proxy(agent.token, `${upstream.url}/mail`).then(found => {
    answer = found
  })
  for (let left = count; left > 0 && answer === undefined; left--) {
    await eventually(
      () => slow.length,
      length => length === 1,
    )
    await connect(`login-${left}`)
    slow.pop()?.()
  }
  const { headers, status } = (await eventually(
    () => answer,
    found => found !== undefined,
  )) as Response
  t.strictSame([status, headers.get('gateway-error')], [503, 'busy'])
  t.ok(headers.get('retry-after'))
  t.equal(upstream.seen.filter(({ target }) => target === '/mail').length, 0, 'nothing was sent')
  isQuick = true
  slow.pop()?.()
  await Promise.all(others)
})
