import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { apiCases } from '../fixtures/api-cases.ts'
import { cpuTimeOf } from '../fixtures/cpu-time.ts'
import { fetchDocumented } from '../fixtures/documented.ts'
import { startGateway, type TestAgent, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'

/** Cases of the corpus that other tests hold, by file. */
const elsewhere: Readonly<Record<string, string>> = {
  A007: 'test/tokens/grant.ts',
  A011: 'test/tokens/grant.ts',
  A012: 'test/tokens/grant.ts',
  // What others feel of it is measured by bench/flood.ts.
  A017: 'test/tokens/grant.ts',
  A034: 'test/proxy/outcomes.ts',
  A042: 'test/policies/files.ts',
  A091: 'test/policy/evaluation/decide.ts',
  A096: 'test/hitl/verdicts.ts',
  A097: 'test/hitl/model.ts',
  A098: 'test/hitl/model.ts',
  A099: 'test/hitl/replay.ts',
  A104: 'test/hitl/replay.ts',
  A107: 'test/hitl/suspend.ts',
  A109: 'test/hitl/suspend.ts',
  A111: 'test/proxy/hitl-lives.ts',
  A120: 'test/management/health.ts',
  A122: 'test/management/docs.ts',
  A123: 'test/tokens/key.ts',
  A124: 'test/config/load.ts',
  A125: 'test/cli/serve.ts',
  A126: 'test/config/load.ts',
}
/** No test yet: it is about the reviewers' page. */
const later = ['A112']

// Those of the proxy are in proxy-cases.ts.
const cases = apiCases(group => group !== 'proxy')

const origin = await startOrigin(t)
const target = `${origin.url}/v1/refunds?token=abc`
const held = { name: 'held', default: 'Hitl' }
const settings = { System: { RateLimit: { RequestsPerMinute: 100_000, Burst: 10_000 } } }
const gateway: TestGateway = await startGateway(t, { config: settings })
await gateway.policy(held)
const { manage } = gateway
const bot: TestAgent = await gateway.agent({ policyName: 'held' })
const reviewer: TestAgent = await gateway.agent({ roles: ['reviewer'] })
const registration = { name: 'bot', ownerId: 'team', clientSecret: 'correct horse battery staple' }

const nobody = null
const statusOf = async (...call: Parameters<typeof manage>) => (await manage(...call)).status
const login = (body: unknown) => statusOf('POST', '/tokens', body, nobody)
const right = { agentId: bot.id, clientSecret: bot.clientSecret }

function send(path: string, body: string | undefined, headers: Record<string, string>, method = 'POST') {
  return fetchDocumented(gateway.url + path, { method, headers, ...(body === undefined ? {} : { body }) })
}

/** Holds a request of `bot` and gives its id. */
async function suspend(body = '{"amount":250}', headers: Record<string, string> = {}): Promise<string> {
  const answer = await gateway.proxy(bot.token, target, { method: 'POST', body, headers })
  return answer.headers.get('location')!.replace('/hitl/status/', '')
}
const approve = (id: string, body?: unknown, token = reviewer.token) =>
  manage('POST', `/hitl/${id}/approve`, body, token)
const countOf = async (path: string) => JSON.parse((await manage('GET', path)).text).totalCount as number

const tests: Readonly<Record<string, (t: Test) => Promise<void>>> = {
  async A001(t) {
    t.equal(await statusOf('POST', '/tokens', undefined, nobody), 400)
  },
  async A002(t) {
    for (const body of ['{', 'null', '[]', '"x"', '123']) t.equal(await login(body), 400, body)
  },
  async A003(t) {
    const body = JSON.stringify(right)
    t.equal((await send('/tokens', body, { 'Content-Type': 'text/plain' })).status, 415)
    const bytes = new TextEncoder().encode(body)
    t.equal((await fetchDocumented(`${gateway.url}/tokens`, { method: 'POST', body: bytes })).status, 415)
  },
  async A004(t) {
    t.equal(await login({}), 401)
    t.equal(await login({ agentId: bot.id }), 401)
  },
  async A005(t) {
    for (const agentId of ['x', `{${bot.id}}`, `${bot.id} `, ''])
      t.equal(await login({ ...right, agentId }), 401, agentId)
    t.equal(await login({ ...right, agentId: bot.id.toUpperCase() }), 200)
  },
  async A006(t) {
    for (const clientSecret of [1, {}, [], null]) t.equal(await login({ agentId: bot.id, clientSecret }), 400)
    t.equal(await login({ agentId: bot.id, clientSecret: '' }), 401)
  },
  async A008(t) {
    const answers = new Set<string>()
    for (const verb of ['deactivate', 'revoke', 'quarantine']) {
      const { id: agentId, clientSecret } = await gateway.agent()
      await manage('POST', `/agents/${agentId}/${verb}`)
      const { status, text } = await manage('POST', '/tokens', { agentId, clientSecret }, nobody)
      answers.add(`${status} ${text}`)
    }
    t.strictSame([...answers], ['401 Missing or invalid authentication'])
  },
  async A009(t) {
    const clientSecret = 'x'.repeat(72)
    const { id: agentId } = await gateway.agent({ clientSecret, name: 'long' }).catch(async () => bot)
    t.equal(await login({ agentId, clientSecret: `${clientSecret}y` }), 401)
  },
  async A010(t) {
    const agent = await gateway.agent()
    for (const tail of ['\u0000', '\r\n', ' '])
      t.equal(await login({ agentId: agent.id, clientSecret: agent.clientSecret + tail }), 401)
  },
  async A013(t) {
    t.equal(await login({ agentId: reviewer.id, externalToken: 'eyJhbGciOiJSUzI1NiJ9.e30.c2ln' }), 401)
  },
  async A014(t) {
    t.equal(await login(`{"agentId":"${'x'.repeat(1_048_576)}"}`), 413)
    t.equal(await login(`${'['.repeat(10_000)}${']'.repeat(10_000)}`), 400)
  },
  async A015(t) {
    t.equal(await login(`{"agentId":"${reviewer.id}",${JSON.stringify(right).slice(1)}`), 400)
  },
  async A016(t) {
    // An unknown field like any other.
    t.equal(await login(`{"__proto__":{"role":"admin"},${JSON.stringify(right).slice(1)}`), 400)
    t.notOk('role' in {})
  },
  async A018(t) {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const { status, headers } = await manage(method, '/tokens')
      t.equal(status, 405)
      t.equal(headers.get('allow'), 'POST')
    }
  },
  async A020(t) {
    const { status, text } = await manage('GET', '/agents', undefined, nobody)
    t.strictSame({ status, text }, { status: 401, text: 'Missing or invalid authentication' })
  },
  async A021(t) {
    const headers = { 'Gateway-Authorization': `Bearer ${gateway.adminToken}` }
    t.equal((await send('/agents', undefined, headers, 'GET')).status, 401)
  },
  async A022(t) {
    const before = await countOf('/agents')
    for (const [method, path, body] of [
      ['GET', '/agents'],
      ['POST', '/agents', registration],
      ['GET', `/agents/${bot.id}`],
      ['DELETE', `/agents/${bot.id}`],
      ['PUT', `/agents/${bot.id}/policy`, { policyName: 'allow-all' }],
      ['PUT', `/agents/${bot.id}/roles`, { roles: ['admin'] }],
      ['POST', `/agents/${bot.id}/lift-quarantine`],
    ] as const)
      t.equal(await statusOf(method, path, body, bot.token), 403, `${method} ${path}`)
    t.equal(await countOf('/agents'), before)
  },
  async A023(t) {
    const before = await countOf('/agents')
    for (const field of Object.keys(registration))
      for (const value of [...(field === 'clientSecret' ? [] : [undefined]), null, 1, {}, []])
        t.equal(await statusOf('POST', '/agents', { ...registration, [field]: value }), 400)
    t.equal(await countOf('/agents'), before)
  },
  async A024(t) {
    for (const clientSecret of ['', 'x'.repeat(73), 'ä'.repeat(37)])
      t.equal(await statusOf('POST', '/agents', { ...registration, clientSecret }), 400)
  },
  async A025(t) {
    const before = await countOf('/agents')
    const more = { id: bot.id, status: 'Active', trustScore: 1, role: 'admin' }
    for (const [field, value] of Object.entries(more))
      t.equal(await statusOf('POST', '/agents', { ...registration, [field]: value }), 400, field)
    t.equal(await countOf('/agents'), before)
  },
  async A026(t) {
    const names = [
      '<script>alert(1)</script>',
      '\u202eevil',
      'x'.repeat(10_240),
      "'; DROP TABLE agents--",
      '𝕏 ⁰⁴⁵',
      '\u0000',
      '\ud800',
    ]
    for (const name of names)
      t.ok([201, 400].includes(await statusOf('POST', '/agents', { ...registration, name })), name)
    const { headers } = await manage('GET', '/agents')
    t.match(headers.get('content-type'), 'application/json')
    t.equal(headers.get('x-content-type-options'), 'nosniff')
  },
  async A027(t) {
    const clientSecret = 'canary-3f0c6d5c0a5f-canary'
    // Its files are searched.
    const { manage, ...gateway } = await startGateway(t, { config: { Storage: { Provider: 'Sqlite' } } })
    await manage('POST', '/agents', { ...registration, clientSecret })
    const { text } = await manage('GET', '/agents?pageSize=200')
    t.notMatch(text, clientSecret)
    t.notMatch(JSON.stringify(gateway.log), clientSecret)
    for (const file of ['gateway.db', 'gateway.db-wal'])
      t.notOk(readFileSync(`${gateway.directory}/data/${file}`).includes(clientSecret), file)
  },
  async A028(t) {
    const bad = ['page=0', 'page=-1', 'page=1.5', 'page=abc', 'page=1e9', 'page=9007199254740993', 'page=']
    for (const query of [...bad, 'pageSize=0', 'pageSize=-1', 'pageSize=1e9', 'pageSize=201', 'page=1&page=2'])
      t.equal(await statusOf('GET', `/agents?${query}`), 400, query)
    t.match(JSON.parse((await manage('GET', '/agents?page=1000000')).text), { items: [] })
  },
  async A029(t) {
    t.equal(await statusOf('PUT', `/agents/${bot.id}/policy`, { policyName: 'nope' }), 400)
    t.match(JSON.parse((await manage('GET', `/agents/${bot.id}`)).text), { policyName: 'held' })
  },
  async A030(t) {
    for (const id of ['00000000-0000-4000-8000-000000000000', 'not-a-uuid'])
      t.equal(await statusOf('PUT', `/agents/${id}/policy`, { policyName: 'held' }), 404)
  },
  async A031(t) {
    const { id } = await gateway.agent()
    const both = await Promise.all([statusOf('DELETE', `/agents/${id}`), statusOf('DELETE', `/agents/${id}`)])
    t.strictSame(both.sort(), [200, 404])
    t.equal(await statusOf('DELETE', `/agents/${id}`), 404)
  },
  async A032(t) {
    t.equal(await statusOf('POST', `/agents/${bot.id}/lift-quarantine`), 200)
    t.equal(await statusOf('POST', `/agents/${bot.id}/lift-quarantine`, undefined, bot.token), 403)
  },
  async A033(t) {
    const before = await countOf('/agents')
    const answers = await Promise.all(Array.from({ length: 20 }, () => manage('POST', '/agents', registration)))
    t.equal(new Set(answers.map(({ text }) => JSON.parse(text).id)).size, 20)
    t.equal(await countOf('/agents'), before + 20)
  },
  async A040(t) {
    t.equal(await statusOf('GET', '/policies/does-not-exist'), 404)
  },
  async A041(t) {
    for (const name of ['..%2f..%2fetc%2fpasswd', 'x'.repeat(10_240), '__proto__', 'constructor'])
      t.equal(await statusOf('GET', `/policies/${name}`), 404, name.slice(0, 40))
    t.equal(await statusOf('GET', '/policies/%00'), 400)
  },
  async A043(t) {
    const { patterns } = JSON.parse(readFileSync(new URL('../cases/redos_patterns.json', import.meta.url), 'utf8'))
    const request = { url: `https://a.example/?${'a'.repeat(65_000)}!` }
    for (const value of patterns as readonly string[]) {
      const condition = { field: 'input.queryString', operator: 'matches', value }
      const rules = [{ name: 'r', effect: 'Deny', conditions: [condition] }]
      const made = await statusOf('POST', '/policies', { name: 'regex', rules })
      t.ok([201, 400].includes(made), value)
      if (made !== 201) continue
      const explain = async () => t.equal(await statusOf('POST', '/policies/regex/explain', { request }), 200)
      // V8 needs 47 s for the first of them.
      t.ok((await cpuTimeOf(explain)) < 2_000, value)
      t.equal(await statusOf('DELETE', '/policies/regex'), 200)
    }
  },
  async A044(t) {
    for (const [index, field] of [
      'input.body.__proto__.polluted',
      'input.headers.__proto__',
      'input.headers.constructor',
    ].entries()) {
      const rules = [{ name: 'r', effect: 'Allow', conditions: [{ field, operator: 'exists', value: 'true' }] }]
      t.equal(await statusOf('POST', '/policies', { name: `proto-${index}`, rules }), 201, field)
      const request = { url: 'https://a.example/', body: {} }
      const { text } = await manage('POST', `/policies/proto-${index}/explain`, { request })
      t.match(JSON.parse(text), { result: { decision: 'Deny' } }, field)
    }
    for (const field of ['input.__proto__.polluted', 'input.constructor.name']) {
      const rules = [{ name: 'r', effect: 'Allow', conditions: [{ field, operator: 'exists', value: 'true' }] }]
      t.equal(await statusOf('POST', '/policies', { name: 'proto', rules }), 400, field)
    }
  },
  async A090(t) {
    const seen = origin.seen.length
    const answer = await gateway.proxy(bot.token, target, { method: 'POST', body: '{}' })
    t.equal(answer.status, 202)
    t.match(answer.headers.get('location'), /^\/hitl\/status\/[\w-]{20,}$/)
    t.match(answer.headers.get('content-type'), 'text/plain')
    t.match(answer.headers.get('cache-control'), 'no-store')
    t.equal(origin.seen.length, seen)
  },
  async A092(t) {
    const id = await suspend()
    const other = await gateway.agent()
    const reads = [bot.token, other.token, reviewer.token, nobody].map(token =>
      statusOf('GET', `/hitl/status/${id}`, undefined, token),
    )
    t.strictSame(await Promise.all(reads), [200, 404, 200, 401])
  },
  async A093(t) {
    const names = ['Authorization', 'Cookie', 'X-Api-Key', 'X-Auth-Token', 'Proxy-Authorization']
    const id = await suspend('{}', Object.fromEntries(names.map(name => [name, 'canary-secret'])))
    const { text } = await manage('GET', `/hitl/${id}`, undefined, reviewer.token)
    t.notMatch(text, 'canary-secret')
    const headers = Object.entries(JSON.parse(text).pending.headers as Record<string, string>)
    const shown = (name: string) => headers.find(([other]) => other.toLowerCase() === name.toLowerCase())?.[1]
    for (const name of names.slice(0, -1)) t.match(shown(name), '[REDACTED]', name)
    t.equal(shown('Proxy-Authorization'), undefined, 'it is not sent, and so not held')
  },
  async A094(t) {
    const own = await gateway.agent({ policyName: 'held', roles: ['agent', 'reviewer'] })
    const answer = await gateway.proxy(own.token, target, { method: 'POST', body: '{}' })
    const id = answer.headers.get('location')!.replace('/hitl/status/', '')
    const seen = origin.seen.length
    t.equal((await approve(id, {}, own.token)).status, 403)
    t.match(JSON.parse((await manage('GET', `/hitl/${id}`)).text), { status: 'Pending' })
    t.equal(origin.seen.length, seen)
  },
  async A095(t) {
    const id = await suspend()
    const seen = origin.seen.length
    t.strictSame([(await approve(id)).status, (await approve(id)).status], [200, 409])
    t.equal(origin.seen.length, seen + 1)
  },
  async A100(t) {
    const failing = await startOrigin(t, (_req, res) => res.writeHead(500).end('broken'))
    const answer = await gateway.proxy(bot.token, failing.url, { method: 'POST', body: '{}' })
    const approved = await approve(answer.headers.get('location')!.replace('/hitl/status/', ''))
    // The answer of the upstream, status and all: no Gateway-Error.
    t.match(approved, { status: 500, text: 'broken' })
    t.equal(approved.headers.get('gateway-error'), null)
  },
  async A101(t) {
    const id = await suspend()
    for (const body of ['{', { comment: 'x'.repeat(10_240) }, { comment: 1 }])
      t.equal((await approve(id, body)).status, 400)
    t.equal((await approve(id, { comment: 'a\r\n\u001b[31mb' })).status, 200)
    const { text } = await manage('GET', `/hitl/${id}`)
    t.notOk(text.includes('\r') || text.includes('\u001b'))
  },
  async A102(t) {
    t.equal((await approve(await suspend())).status, 200)
    const empty = { 'Content-Type': 'application/json', Authorization: `Bearer ${reviewer.token}` }
    t.equal((await send(`/hitl/${await suspend()}/approve`, '', empty)).status, 200)
  },
  async A103(t) {
    const doomed = await gateway.agent({ policyName: 'held' })
    const answer = await gateway.proxy(doomed.token, target, { method: 'POST', body: '{}' })
    const seen = origin.seen.length
    await manage('POST', `/agents/${doomed.id}/revoke`)
    t.equal((await approve(answer.headers.get('location')!.replace('/hitl/status/', ''))).status, 403)
    t.equal(origin.seen.length, seen)
  },
  async A105(t) {
    // A verdict is a wait as well: what the policy denies by now is not sent.
    const id = await suspend()
    await manage('PUT', '/policies/held', { ...held, default: 'Deny' })
    t.equal((await approve(id)).status, 403, 'the policy in force holds')
    await manage('PUT', '/policies/held', held)
  },
  async A106(t) {
    const directory = testdir(t)
    const first = await startGateway(t, { directory, config: settings })
    await first.policy(held)
    const agent = await first.agent({ policyName: 'held' })
    const answer = await first.proxy(agent.token, target, { method: 'POST', body: '{}' })
    const path = answer.headers.get('location')!
    const before = JSON.parse((await first.manage('GET', path)).text).request
    await first.close()
    const second = await startGateway(t, { directory, config: settings })
    const { digest, expiresAt, status } = JSON.parse((await second.manage('GET', path)).text).request
    t.strictSame(
      { digest, expiresAt, status },
      { digest: before.digest, expiresAt: before.expiresAt, status: 'Pending' },
    )
  },
  async A108(t) {
    for (const path of ['/hitl/1', '/hitl/%2e%2e', '/hitl/..%2fagents', '/hitl/status/%2e%2e'])
      t.equal(await statusOf('GET', path), 404, path)
  },
  async A110(t) {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
    const answer = await gateway.proxy(bot.token, target, { method: 'POST', body: bytes })
    const id = answer.headers.get('location')!.replace('/hitl/status/', '')
    const { pending } = JSON.parse((await manage('GET', `/hitl/${id}`)).text)
    t.strictSame(Buffer.from(pending.body, pending.bodyEncoding), bytes)
    t.equal((await approve(id)).status, 200)
    t.strictSame(origin.seen.at(-1)?.body, bytes)
  },
  async A121(t) {
    t.equal(await statusOf('GET', '/health?x=../', undefined, nobody), 200)
    t.match(await manage('HEAD', '/health', undefined, nobody), { status: 200, text: '' })
    t.equal(await statusOf('POST', '/health', undefined, nobody), 405)
  },
  async A127(t) {
    const texts = [
      '{"a":"b"}#',
      '{a:1}',
      "{'a':1}",
      '{"a":1,}',
      '[1,]',
      '01',
      '+1',
      '.5',
      '1.',
      '0x1',
      'Infinity',
      'nul',
      '"\t"',
      '"\\x00"',
      '["\\u00A"]',
      '{"a" "b"}',
      '{"a":1 "b":2}',
      '{,}',
      '\u00a0{}',
      '{}\u2028',
      '"\\',
      '{"":',
      '[][]',
    ]
    const routes = [
      ['POST', '/tokens'],
      ['POST', '/agents'],
      ['PUT', `/agents/${bot.id}/policy`],
      ['PUT', `/agents/${bot.id}/roles`],
      ['POST', '/policies'],
      ['PUT', '/policies/held'],
      ['POST', '/policies/held/explain'],
      ['POST', '/hitl/x/approve'],
      ['POST', '/hitl/x/deny'],
    ] as const
    for (const [method, path] of routes)
      for (const text of texts) t.equal(await statusOf(method, path, text), 400, `${path} ${text}`)
  },
  async A128(t) {
    for (const path of [
      '/tokens',
      '/agents',
      `/agents/${bot.id}/policy`,
      '/policies',
      '/hitl',
      '/health',
      '/open-api',
      '/nope',
    ])
      for (const method of ['PATCH', 'OPTIONS', 'PROPFIND', 'M-SEARCH', 'QUERY']) {
        const { status, headers } = await manage(method, path)
        t.ok(status === 404 || (status === 405 && headers.has('allow')), `${method} ${path}: ${status}`)
      }
  },
}

for (const { id, request, expect } of cases)
  if (tests[id] !== undefined) t.test(`${id}: ${request} -> ${expect}`, tests[id])

t.test('every case of the control plane has its test', async t => {
  const known = [...Object.keys(tests), ...Object.keys(elsewhere), ...later].sort()
  t.strictSame(known, cases.map(({ id }) => id).sort())
  for (const file of Object.values(elsewhere))
    t.doesNotThrow(() => readFileSync(new URL(`../../${file}`, import.meta.url)))
})
