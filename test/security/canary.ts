/** T13, T35: what is secret is found nowhere but where it belongs, after the main flows have carried it around. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startIdentityProvider } from '../fixtures/idp.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'
import { testdir } from '../fixtures/testdir.ts'

const canaries = new Map<string, string>()

/** A value that nothing else can hold by chance. */
function canary(what: string): string {
  const value = `cnry${randomBytes(12).toString('hex')}`
  canaries.set(what, value)
  return value
}

const directory = testdir(t)
mkdirSync(join(directory, 'policies'))
/** Everything that the gateway wrote or said, by place. */
const said = new Map<string, string>()
const note = (place: string, text: string) => void said.set(place, (said.get(place) ?? '') + text)

const { authority, passwordGrant } = await startIdentityProvider(t)
const origin = await startOrigin(t, (_req, res) => {
  res.setHeader('Set-Cookie', `session=${canaries.get('cookie of the upstream')}`)
  res.end(`answer ${canaries.get('body of the answer')}`)
})
canary('cookie of the upstream')
canary('body of the answer')
const hooks = await startOrigin(t)

const keyOfUpstream = canary('credential of an upstream')
const gateway = await startGateway(t, {
  directory,
  env: { KEY: keyOfUpstream },
  config: {
    // Its files are searched.
    Storage: { Provider: 'Sqlite' },
    Logging: { Level: 'debug' },
    Security: {
      AgentAuth: {
        TokenIssuance: { Secret: canary('signing secret').padEnd(48, 'aZ3') },
        ExternalIdentity: {
          Provider: 'Jwt',
          Jwt: { Authority: authority, Audience: 'gateway', RequireHttpsMetadata: false },
        },
      },
      Sealing: { Secret: canary('sealing secret').padEnd(48, 'bY7') },
    },
    Upstreams: [{ Host: `127.0.0.1:${origin.port}`, Header: 'X-Operator', ValueFromEnv: 'KEY', AllowHttp: true }],
    HumanInTheLoop: {
      Webhooks: [{ Url: `${hooks.url}/${canary('path of a webhook')}`, Secret: canary('secret of a webhook') }],
    },
    Trust: { QuarantineDenials: 0, QuarantineBelow: 0 },
  },
})
const bootstrap = readFileSync(join(directory, 'data', 'bootstrap.json'), 'utf8')
canaries.set('secret of the admin', JSON.parse(bootstrap).clientSecret)
await gateway.policy({ name: 'held', default: 'Hitl' })
await gateway.policy({ name: 'denied', default: 'Deny' })
await gateway.policy({
  name: 'reads-bodies',
  default: 'Allow',
  rules: [{ name: 'r', effect: 'Deny', conditions: [{ field: 'input.body.a', operator: 'eq', value: 'x' }] }],
})

/** A call of the management API whose answer may hold nothing secret. */
async function manage(...call: Parameters<typeof gateway.manage>) {
  const answer = await gateway.manage(...call)
  note('answers of the management API', `${JSON.stringify([...answer.headers])}${answer.text}`)
  return answer
}

const clientSecret = canary('client secret')
const users: { id: string; token: string }[] = []
async function register(policyName: string) {
  const { text } = await gateway.manage('POST', '/agents', { name: 'a', ownerId: 'o', clientSecret, policyName })
  const { id } = JSON.parse(text)
  const login = await gateway.manage('POST', '/tokens', { agentId: id, clientSecret }, null)
  const { token } = JSON.parse(login.text)
  // The signature alone: the rest is no secret, and the id of the agent is everywhere.
  canaries.set(`token of the agent ${policyName}`, token.split('.')[2])
  users.push({ id, token })
  return { id, token }
}

/** A request with a secret in every place that may hold one; the header value keeps its scheme. */
function loaded(what: string): { readonly query: string; readonly init: RequestInit } {
  const headers = {
    Authorization: `Bearer ${canary(`${what}: Authorization`)}`,
    Cookie: `sid=${canary(`${what}: Cookie`)}`,
    'Content-Type': 'application/json',
    'X-Api-Key': canary(`${what}: X-Api-Key`),
    'X-Session-Token': canary(`${what}: a field whose name ends in -token`),
    Referer: `https://r.example/?access_token=${canary(`${what}: query of the Referer`)}`,
  }
  const query = `?api_key=${canary(`${what}: api_key of the query`)}&page=2`
  return { query, init: { method: 'POST', headers, body: JSON.stringify({ a: canary(`${what}: body`) }) } }
}

/** A proxied request; the answer is checked only when it is the gateway's own. */
async function call(token: string, what: string, path = '/visible-marker') {
  const { query, init } = loaded(what)
  const answer = await gateway.proxy(token, `${origin.url}${path}${query}`, init)
  const text = await answer.text()
  if (answer.headers.has('gateway-error') || answer.status === 202) {
    note('answers of the gateway on /proxy', `${JSON.stringify([...answer.headers])}${text}`)
  }
  return answer
}

t.test('requests are allowed, denied, held, approved and refused, with secrets everywhere', async t => {
  const allowed = await register('reads-bodies')
  t.equal((await call(allowed.token, 'allowed')).status, 200)
  t.equal((await call((await register('denied')).token, 'denied')).status, 403)

  const holder = await register('held')
  const ids: string[] = []
  for (const what of ['held and approved', 'held and denied', 'held and left']) {
    const held = await call(holder.token, what)
    t.equal(held.status, 202)
    ids.push(held.headers.get('location')!.replace('/hitl/status/', ''))
  }
  const [approved, denied, left] = ids as [string, string, string]
  await manage('GET', '/hitl')
  for (const id of ids) {
    // The body of what waits is what a reviewer must see: it is not among the secrets of this answer.
    const { text } = await gateway.manage('GET', `/hitl/status/${id}`)
    note('detail of a held request, without its body', JSON.stringify({ ...JSON.parse(text).request, body: '' }))
  }
  const approval = await gateway.manage('POST', `/hitl/${approved}/approve`, { comment: 'fine' })
  t.equal(approval.status, 200)
  t.equal((await manage('POST', `/hitl/${denied}/deny`, { comment: 'no' })).status, 200)
  t.equal((await manage('POST', `/hitl/${approved}/approve`)).status, 409)
  const answer = await gateway.manage('GET', `/hitl/${approved}/response`, undefined, holder.token)
  t.match(answer.text, canaries.get('body of the answer'), 'the agent gets what its request was answered')
  await manage('GET', `/hitl/${left}/response`, undefined, holder.token)

  const { id } = await register('reads-bodies')
  await gateway.manage('POST', `/agents/${id}/revoke`)
  t.equal((await call(users.at(-1)!.token, 'revoked')).status, 403)
  const own = await gateway.proxy(allowed.token, `${origin.url}/`, { headers: { 'X-Operator': canary('conflict') } })
  t.equal(own.status, 403)
  note('answers of the gateway on /proxy', await own.text())
  await gateway.gateway.reload()
})

t.test('credentials are right, wrong and malformed', async t => {
  const { id } = users[0]!
  for (const body of [
    { agentId: id, clientSecret: canary('wrong secret') },
    { agentId: id, externalToken: canary('no token at all') },
    { agentId: canary('secret in the place of an id'), clientSecret: 'x' },
    { agentId: id, clientSecret: 1, more: canary('unknown field') },
    `{"clientSecret":"${canary('secret in malformed JSON')}",`,
  ]) {
    t.ok((await manage('POST', '/tokens', body, null)).status >= 400)
  }
  const { access_token: external } = await passwordGrant('nobody')
  canaries.set('token of the identity provider', external.split('.')[2]!)
  t.equal((await manage('POST', '/tokens', { agentId: id, externalToken: external }, null)).status, 401)
  t.equal((await call(external, 'foreign token')).status, 401)
  const long = 'x'.repeat(80)
  for (const body of [
    { name: 'a', ownerId: 'o', clientSecret: `${canary('too long a secret')}${long}` },
    { name: 7, ownerId: 'o', clientSecret: canary('secret beside a mistake') },
    `{"name":"a","clientSecret":"${canary('secret in a malformed registration')}"`,
  ]) {
    t.equal((await manage('POST', '/agents', body)).status, 400)
  }
})

t.test('requests are malformed, with secrets in them', async t => {
  const { token } = users[0]!
  const auth = `Gateway-Authorization: Bearer ${token}\r\n`
  const heads = [
    `GET /proxy/http://user:${canary('password in the URL')}@127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: g\r\n${auth}`,
    `GET /proxy/http://127.1/?key=${canary('key for a bad host')} HTTP/1.1\r\nHost: g\r\n${auth}`,
    `GET /proxy/http://169.254.169.254/?key=${canary('key for a refused host')} HTTP/1.1\r\nHost: g\r\n${auth}`,
    `GET /proxy/http://127.0.0.1:1/?key=${canary('key for a dead host')} HTTP/1.1\r\nHost: g\r\n${auth}`,
    `GET /agents?access_token=${canary('token in a query')} HTTP/1.1\r\nHost: g\r\n`,
    `GET /${canary('unknown path')} HTTP/1.1\r\nHost: g\r\n`,
    `GET / HTTP/1.1\r\nHost: g\r\nHost: ${canary('second host')}\r\n`,
    `GET / HTTP/1.1\r\nHost: g\r\nAuthorization : Bearer ${canary('a field that cannot be read')}\r\n`,
    `BAD ${canary('a line that cannot be read')}\r\n`,
    `POST / HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: ${canary('a coding')}\r\n`,
  ]
  for (const head of heads) {
    const client = await openRaw(t, gateway.port)
    client.write(`${head}Connection: close\r\n\r\n`)
    const answer = await client.closed()
    t.match(answer, /^HTTP\/1\.1 [45]/)
    note('answers to malformed requests', answer)
  }
})

t.test(
  'nothing secret is in the log, the database, the audit trail, an error, the documentation or a webhook',
  async t => {
    for (const path of ['/audit', '/audit/export', '/agents', '/policies', '/policies/held', '/hitl', '/hitl/grants']) {
      await manage('GET', path)
    }
    // What is recorded of requests is read and stored.
    for (const { id } of users) await manage('GET', `/agents/${id}/shapes`)
    for (const path of ['/open-api', '/open-api/gateway/specifications.json', '/health', '/metrics'])
      await manage('GET', path)
    while (hooks.seen.length < 3) await new Promise(setImmediate)
    for (const { rawHeaders, body } of hooks.seen)
      note('webhooks', JSON.stringify(rawHeaders) + body.toString('latin1'))
    const data = join(directory, 'data')
    const files = () => {
      const names = readdirSync(data).filter(name => name !== 'bootstrap.json')
      for (const name of names) note(`file ${name}`, readFileSync(join(data, name), 'latin1'))
    }
    files()
    await gateway.close()
    files()
    note('log', JSON.stringify(gateway.log))

    for (const place of ['log', 'file gateway.db', 'webhooks', 'answers of the management API']) {
      t.match(said.get(place), /visible-marker/, `${place} is read`)
    }
    t.ok(canaries.size > 60)
    const leaks: string[] = []
    for (const [place, text] of said) {
      for (const [what, value] of canaries) {
        // A path that is unknown is told to whoever asked for it.
        if (place !== 'log' && what === 'unknown path') continue
        if (holds(text, value)) leaks.push(`${what} in ${place}`)
      }
    }
    t.strictSame(leaks, [])
  },
)

/** The value as it is, or in base64 wherever it may begin. */
function holds(text: string, value: string): boolean {
  if (text.includes(value)) return true
  return [0, 1, 2].some(shift => {
    const encoded = Buffer.from(' '.repeat(shift) + value).toString('base64')
    return text.includes(encoded.slice(shift === 0 ? 0 : 4, -4))
  })
}

t.test('nothing that identifies the agent to the gateway has reached an upstream', async t => {
  t.ok(origin.seen.length >= 2)
  for (const { rawHeaders, body, target } of origin.seen) {
    const bytes = `${target}\n${rawHeaders.join('\n')}\n${body.toString('latin1')}`
    for (const [what, value] of canaries) {
      if (/^token of|secret/.test(what)) t.notOk(bytes.includes(value), what)
    }
    t.match(bytes, keyOfUpstream, 'what it needs to know the gateway it has')
  }
})
