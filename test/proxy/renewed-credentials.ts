/** Credentials whose tokens come from a server. Threat T83 of SECURITY.md. */
import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { secureCaFile, secureName, startSecureOrigin } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'

const secret = 'client-secret-0123456789'
let issued = 0
let status = 200
let error: string | undefined
/** Tokens that the API takes; undefined: any. */
let accepted: ((authorization: string) => boolean) | undefined
/** Requests for tokens that wait; undefined: none does. */
let waitFor: (() => void)[] | undefined
const idp = await startSecureOrigin(t, (req, res) => {
  if (req.url?.startsWith('/token/') !== true) {
    const authorization = req.headers.authorization ?? ''
    const isAccepted = accepted?.(authorization) ?? true
    if (isAccepted && req.url?.startsWith('/model/') === true) {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end('{"model":"m","usage":{"prompt_tokens":3,"completion_tokens":4}}')
      return
    }
    if (req.url === '/first?reason') {
      res.writeHead(200, `no rights for ${authorization}`, { 'content-length': 0 }).end()
      return
    }
    res.writeHead(isAccepted ? 200 : 401, { 'x-echo': `got ${authorization}`, 'www-authenticate': 'Bearer realm=x' })
    res.end(isAccepted ? 'fine' : 'who are you?')
    return
  }
  if (waitFor !== undefined) {
    waitFor.push(() => answerToken(res))
    return
  }
  answerToken(res)
})

function answerToken(res: ServerResponse): void {
  issued += 1
  res.writeHead(error === undefined ? status : 400, { 'content-type': 'application/json' })
  const token = { access_token: `secret-token-${issued}`, token_type: 'Bearer', expires_in: 3_600 }
  res.end(JSON.stringify(error === undefined ? token : { error }))
}
const directory = testdir(t, { policies: {} })
const secretFile = join(directory, 'secret')
writeFileSync(secretFile, `${secret}\n`, { mode: 0o600 })
const host = `${secureName}:${idp.port}`
const clientOf = (Name: string) => ({
  ...{ Name, Type: 'ClientCredentials', Secret: 'client', ClientId: 'gateway' },
  TokenUrl: `${idp.url}/token/${Name}`,
})
const names = ['slow', 'first', 'held', 'refused', 'down', 'gone', 'model']
const gateway = await startGateway(t, {
  directory,
  lookup: async () => ['127.0.0.1'],
  alone: 'each gateway gets tokens of its own',
  config: {
    System: { RateLimit: { RequestsPerMinute: 1_000_000, Burst: 1_000_000 } },
    Proxy: { CaFile: secureCaFile },
    Metering: { Hosts: [host] },
    Budgets: ['Tokens', 'Calls'].map(Unit => ({ Name: Unit.toLowerCase(), Unit, Owners: ['models'] })),
    Secrets: [{ Name: 'client', FromFile: 'secret' }],
    Credentials: [...names.map(clientOf), { Name: 'key', Secret: 'client' }],
    Upstreams: [
      ...names.map(name => ({
        Host: host,
        Paths: [`/${name}`],
        Credential: name,
      })),
      { Host: host, Paths: ['/key'], Credential: 'key', Query: 'key' },
    ],
  },
})
await gateway.policy({ name: 'held', default: 'Hitl' })
const bot = await gateway.agent()
const careful = await gateway.agent({ policyName: 'held' })
const call = (path: string, init?: RequestInit) => gateway.proxy(bot.token, `${idp.url}${path}`, init)
const calls = (path: string) => idp.seen.filter(({ target }) => target.startsWith(path))

t.beforeEach(() => {
  idp.seen.length = 0
  issued = 0
})

t.test('the first call waits for the token, and all at once wait for the same', async t => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => call('/first')))
  t.strictSame([...new Set(answers.map(({ status }) => status))], [200])
  t.equal(issued, 1)
  t.ok(calls('/first').every(({ headers }) => headers.authorization === 'Bearer secret-token-1'))
  const lines = await gateway.exchanges(20)
  t.ok(lines.every(({ credential }) => credential === 'first'))
})

t.test('an upstream that echoes the value shows it to nobody, and its challenge is not for the client', async t => {
  const answer = await call('/first')
  t.equal(answer.headers.get('x-echo'), 'got Bearer [redacted]')
  t.equal(answer.headers.get('www-authenticate'), null)
  t.equal(answer.headers.get('gateway-upstream-www-authenticate'), 'Bearer realm=x')
})

t.test('nor does one that says it in its reason', async t => {
  for (const time of ['once', 'a head that is known', 'again']) {
    const { status, statusText } = await call('/first?reason')
    t.strictSame([status, statusText], [200, 'no rights for Bearer [redacted]'], time)
  }
})

t.test('after a 401 the token is renewed once, and the request is sent once more', async t => {
  await call('/refused')
  t.equal(issued, 1)
  accepted = authorization => authorization === 'Bearer secret-token-2'
  const answer = await call('/refused', { method: 'POST', body: '' })
  t.equal(await answer.text(), 'fine')
  t.equal(issued, 2)
  accepted = () => false
  const refused = await call('/refused')
  t.equal(refused.status, 401, 'once in a minute')
  t.equal(await refused.text(), 'who are you?')
  t.equal(issued, 2)
  t.equal(calls('/refused').length, 4)
  accepted = undefined
})

t.test(
  'T77 a call of a model that is sent once more after a 401 counts once in budgets of tokens and of calls',
  async t => {
    const { id, token } = await gateway.agent({ ownerId: 'models' })
    accepted = authorization => authorization === 'Bearer secret-token-2'
    const init = { method: 'POST', body: '{"model":"m","max_tokens":50}' }
    const answer = await gateway.proxy(token, `${idp.url}/model/v1/chat/completions`, init)
    accepted = undefined
    t.equal(answer.status, 200)
    t.equal(calls('/model').length, 2)
    const budgets = await eventually(
      async () => JSON.parse((await gateway.manage('GET', `/agents/${id}/budgets`)).text),
      found => found.every(({ reserved, calls }: { reserved: number; calls: number }) => reserved === 0 && calls === 1),
    )
    t.match(budgets, [
      { budget: 'tokens', spent: 7, estimated: 0 },
      { budget: 'calls', spent: 1 },
    ])
  },
)

t.test(
  'a body that streams is not sent twice: the client gets the 401, and the next request the new token',
  async t => {
    await call('/down')
    accepted = authorization => authorization === 'Bearer secret-token-2'
    const answer = await call('/down', { method: 'POST', body: 'x'.repeat(100) })
    t.equal(answer.status, 401)
    t.equal(calls('/down').length, 2)
    accepted = undefined
  },
)

t.test('an agent that is revoked while its 401 is held back gets that answer, and the gateway goes on', async t => {
  await call('/slow')
  accepted = () => false
  waitFor = []
  const other = await gateway.agent()
  const answer = gateway.proxy(other.token, `${idp.url}/slow`)
  await eventually(
    () => waitFor!.length,
    count => count === 1,
  )
  t.equal((await gateway.manage('POST', `/agents/${other.id}/revoke`)).status, 200)
  t.equal((await answer).headers.get('gateway-error'), 'agent_revoked')
  const [answerIt] = waitFor
  waitFor = undefined
  status = 500
  answerIt!()
  status = 200
  accepted = undefined
  t.equal((await call('/first')).status, 200)
})

t.test('without a token nothing leaves, and the agent learns whether a retry helps', async t => {
  status = 500
  const answer = await call('/gone')
  t.equal(answer.status, 503)
  t.equal(answer.headers.get('retry-after'), '5')
  t.match(await answer.json(), { code: 'credential_unavailable', credential: 'gone' })
  status = 200
  error = 'invalid_grant'
  // The pause after a failure ends when the secret is another one.
  writeFileSync(secretFile, `${secret}+`, { mode: 0o600 })
  const later = await eventually(
    () => call('/gone'),
    ({ status }) => status === 403,
  )
  t.match(await later.json(), { code: 'credential_needed', credential: 'gone' })
  t.equal(calls('/gone').length, 0)
  error = undefined
  writeFileSync(secretFile, secret, { mode: 0o600 })
  await eventually(
    () => call('/gone'),
    ({ status }) => status === 200,
  )
})

t.test('a parameter of the query is in no log line, and the agent may not send it', async t => {
  await eventually(
    () => call('/key?a=1').then(() => calls('/key').at(-1)?.target),
    target => target === `/key?a=1&key=${secret}`,
  )
  t.equal((await call('/key?key=mine')).headers.get('gateway-error'), 'credential_conflict')
})

t.test('a held request shows the name of its credential, and gets the value when it is sent', async t => {
  const held = await gateway.proxy(careful.token, `${idp.url}/held`, { method: 'POST', body: 'x' })
  t.equal(held.status, 202)
  t.strictSame(calls('/token/held'), [], 'a token is fetched when the request leaves')
  const id = held.headers.get('location')!.replace('/hitl/status/', '')
  const { pending } = JSON.parse((await gateway.manage('GET', `/hitl/${id}`)).text)
  t.strictSame(pending.addedFields, ['Authorization (held)'])
  t.equal((await gateway.manage('POST', `/hitl/${id}/approve`)).status, 200)
  t.equal(calls('/token/held').length, 1)
  t.match(calls('/held')[0]?.headers.authorization, /^Bearer secret-token-\d+$/)
})

t.test('no secret and no token is in the log', async t => {
  const text = JSON.stringify(gateway.log)
  for (const value of [secret, 'secret-token-']) t.notOk(text.includes(value), value)
})
