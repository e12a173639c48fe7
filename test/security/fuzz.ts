/** T05, T13, T20, T26, T39, T46: random hostile input neither breaks the gateway nor gets through it. */
import { request } from 'node:http'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { openApi, readOperations } from '../../src/api/openapi.ts'
import { readingsOf } from '../../src/base/readings.ts'
import type { RefusalCode } from '../../src/base/refusal-kinds.ts'
import { fetchDocumented } from '../fixtures/documented.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const origin = await startOrigin(t)
const gateway = await startGateway(t, {
  config: {
    System: {
      RateLimit: { RequestsPerMinute: 10_000_000, Burst: 1_000_000 },
      CircuitBreaker: { Failures: 10_000 },
    },
    Security: { AgentAuth: { TokenRequests: { PerAgentPerMinute: 100_000, PerAddressPerMinute: 100_000 } } },
    Trust: { QuarantineDenials: 0, QuarantineBelow: 0 },
  },
  lookup: async () => [],
})
await gateway.policy({ name: 'held', default: 'Hitl' })
const bot = await gateway.agent()
const auth = `Gateway-Authorization: Bearer ${bot.token}`
const victim = await gateway.agent()
const pollution = Object.keys(Object.prototype).length

/** Refusals of the 5xx class that a request can bring about by itself. */
const allowed5xx: ReadonlySet<RefusalCode> = new Set([
  'upstream_failed',
  'upstream_timeout',
  'loop_detected',
  'http_version_not_supported',
])

/** What must hold after every storm. */
async function assertUnharmed(t: Test): Promise<void> {
  t.equal((await fetchDocumented(`${gateway.url}/health`)).status, 200)
  t.equal(Object.keys(Object.prototype).length, pollution, 'Object.prototype is as it was')
  t.strictSame(
    gateway.log.filter(({ level }) => level === 'error'),
    [],
  )
}

const pick = <T>(...values: readonly T[]) => fc.constantFrom(...values)
/** Bytes as they may be put on a wire, as latin1 text. */
const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map(array => Buffer.from(array).toString('latin1'))
const printable = (maxLength: number) =>
  fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map(code => String.fromCharCode(code)), maxLength })

const lineEnd = fc.oneof({ weight: 12, arbitrary: pick('\r\n') }, { weight: 1, arbitrary: pick('\n', '\r', '\r\r\n') })
const method = fc.oneof(pick('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'PRI', 'get'), printable(8))
const target = fc.oneof(
  pick('/', '/health', '/agents', '/tokens', '*', '/proxy/', '/proxy/http://', `/proxy/${origin.url}/`, '//', ''),
  printable(40).map(text => `/proxy/${origin.url}/${text}`),
  printable(40).map(text => `/proxy/${text}`),
  bytes(40).map(text => `/${text}`),
)
const version = fc.oneof(
  { weight: 8, arbitrary: pick('HTTP/1.1') },
  { weight: 1, arbitrary: pick('HTTP/1.0', 'HTTP/2.0', 'HTTP/9.9', 'HTTP/1.1 x', '', 'ICY') },
)
const field = fc.oneof(
  pick(
    'Content-Length: 5',
    'Content-Length: 05',
    'Content-Length: -1',
    'Content-Length: 1e9',
    'Content-Length: 99999999999999999999',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding : chunked',
    'Expect: 100-continue',
    'Expect: 200-ok',
    'Upgrade: h2c',
    'Connection: upgrade, close, host',
    'Connection: gateway-authorization',
    'Host: a, b',
    'Host:',
    'Content-Type: application/json',
    'Via: 1.1 agent-gateway',
    ': x',
    ' folded',
    '\tfolded',
    '__proto__: x',
    'constructor: x',
  ),
  fc.tuple(printable(12), bytes(24)).map(([name, value]) => `${name}: ${value}`),
  bytes(30),
)
const body = fc.oneof(pick('', 'hello', '5\r\nhello\r\n0\r\n\r\n', '5;x=y\r\nhello\r\n0\r\nT: x\r\n\r\n'), bytes(60))

const rawRequest = fc
  .record({
    line: fc.tuple(method, pick(' ', ' ', ' ', '  ', '\t'), target, pick(' ', ' ', ' ', '', '  '), version),
    fields: fc.array(field, { maxLength: 6 }),
    host: fc.boolean(),
    authorized: fc.boolean(),
    ends: fc.array(lineEnd, { minLength: 10, maxLength: 10 }),
    body,
  })
  .map(({ line, fields, host, authorized, ends, body }) => {
    const lines = [line.join(''), ...(host ? ['Host: g'] : []), ...(authorized ? [auth] : []), ...fields, '']
    return lines.map((text, index) => text + ends[index]).join('') + body
  })

t.test(
  'T20 T46 whatever bytes come, each answer is sound, none is a fault of the gateway, and it lives on',
  async t => {
    const before = origin.seen.length
    let answers = 0
    await fc.assert(
      fc.asyncProperty(rawRequest, async text => {
        const client = await openRaw(t, gateway.port)
        client.socket.end(Buffer.from(text, 'latin1'))
        const received = await client.closed()
        for (const [, status] of received.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)) {
          answers += 1
          if (Number(status) < 500) continue
          const code = /^gateway-error: (\S+)/im.exec(received)?.[1] as RefusalCode
          if (!allowed5xx.has(code)) throw new Error(`${status} ${code}`)
        }
      }),
      { numRuns: 1_000, seed: 20_261 },
    )
    t.ok(answers > 500, `${answers} answers`)
    t.ok(origin.seen.length - before < 500)
    for (const { rawHeaders } of origin.seen) t.notOk(rawHeaders.join('\n').includes(bot.token))
    await assertUnharmed(t)
  },
)

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  pick('__proto__', 'constructor', '..', '%00', "' or 1=1"),
)
const json = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc.constantFrom<unknown>(JSON.parse('{"__proto__":{"admin":true}}'), [], '', 0, null, {
    constructor: { prototype: { x: 1 } },
  }),
)

/** A body that would do, by operation: the ones that fuzzing starts from. */
const sound: Readonly<Record<string, object>> = {
  issueToken: { agentId: victim.id, clientSecret: 'x' },
  registerAgent: { name: 'n', ownerId: 'o', clientSecret: 's', roles: ['agent'], policyName: 'held' },
  assignPolicy: { policyName: 'held' },
  assignRoles: { roles: ['agent'] },
  createPolicy: { name: 'p', default: 'Deny', rules: [{ name: 'r', effect: 'Deny', conditions: [] }] },
  replacePolicy: { default: 'Deny', rules: [{ name: 'r', effect: 'Deny', conditions: [] }] },
  explainPolicy: { method: 'GET', url: 'https://a.example/' },
  approveRequest: { comment: 'c', resend: false },
  denyRequest: { comment: 'c' },
}

/** The sound body with some members replaced, taken away or added; or anything. */
const bodyOf = (id: string) =>
  fc.oneof(
    json,
    fc
      .tuple(
        fc.constant(sound[id] ?? {}),
        fc.dictionary(fc.oneof(pick(...Object.keys(sound[id] ?? { x: 1 })), text), json),
      )
      .map(([base, over]) => ({ ...base, ...over })),
  )

t.test('T26 T39 no body, path or query of any operation makes a fault, and every answer is documented', async t => {
  // An event stream never ends.
  const operations = readOperations(openApi).filter(({ id }) => id !== 'streamHitlEvents')
  const calls = fc.constantFrom(...operations).chain(operation =>
    fc.record({
      operation: fc.constant(operation),
      parameters: fc.array(fc.oneof(text, pick(victim.id, 'held')), { minLength: 2, maxLength: 2 }),
      query: fc.dictionary(
        fc.oneof(pick('page', 'pageSize', 'from', 'actor', ...operation.query.map(q => q.name)), text),
        text,
        {
          maxKeys: 3,
        },
      ),
      body: operation.body === undefined ? fc.constant(undefined) : fc.option(bodyOf(operation.id), { nil: undefined }),
    }),
  )
  await fc.assert(
    fc.asyncProperty(calls, async ({ operation, parameters, query, body }) => {
      const path = operation.path.replace(/\{\w+\}/g, () => encodeURIComponent((parameters.pop() ?? '').toWellFormed()))
      const search = new URLSearchParams(query as Record<string, string>)
      const { status } = await gateway.manage(operation.method, `${path}?${search}`, body)
      const documented = openApi.paths[operation.path]![operation.method.toLowerCase()] as unknown as {
        readonly responses: object
      }
      // A path with an empty or a dot segment is that of no operation.
      if (status >= 500 || !(String(status) in documented.responses || [301, 404, 405].includes(status))) {
        throw new Error(`${operation.method} ${path}: ${status}`)
      }
    }),
    { numRuns: 700, seed: 20_262 },
  )
  await assertUnharmed(t)
})

t.test('T05 T13 what is decided is what is sent, byte for byte, and the token stays here', async t => {
  const pathChar = printable(1).filter(char => char !== '' && !'#\\?'.includes(char))
  const path = fc.string({ unit: pathChar, maxLength: 30 })
  const query = fc.option(fc.string({ unit: pathChar, maxLength: 20 }), { nil: undefined })
  const name = fc.oneof(
    pick('X-A', 'Accept', 'gateway-authorization', 'Cookie', 'X-Token'),
    fc.string({ unit: pick(...'abcXYZ019-_.!~'), minLength: 1, maxLength: 10 }),
  )
  const fields = fc.array(fc.tuple(name, printable(20)), { maxLength: 8 })
  let sent = 0
  await fc.assert(
    fc.asyncProperty(path, query, fields, async (path, query, fields) => {
      origin.seen.length = 0
      const requestTarget = `/${path}${query === undefined ? '' : `?${query}`}`
      const own = fields.filter(([name]) => !/^gateway-authorization$/i.test(name))
      const headers = ['Host', 'g', 'Gateway-Authorization', `Bearer ${bot.token}`]
      for (const [name, value] of own) headers.push(name, value)
      const status = await call(`/proxy/${origin.url}${requestTarget}`, headers)
      const [seen] = origin.seen
      if (status === 400) {
        if (seen !== undefined) throw new Error('sent although refused')
        const literal = /(^|\/)(\.|%2e){1,2}(\/|$)/i.test(`/${path}`)
        if (!literal && typeof readingsOf(`/${path}`) !== 'string') throw new Error('refused without need')
        return
      }
      sent += 1
      const pairs = own.flat()
      if (seen?.target !== requestTarget) throw new Error(`${seen?.target} was sent`)
      if (seen.rawHeaders.join('\n').includes(bot.token)) throw new Error('the token was sent')
      // Host stands in front: it is of the connection.
      const passed = seen.rawHeaders.slice(2, 2 + pairs.length)
      if (passed.join('\n') !== pairs.join('\n')) throw new Error(`${passed} was sent`)
      const { path: decided } = gateway.log.findLast(({ message }) => message === 'exchange') ?? {}
      if (decided !== `/${path}`) throw new Error(`${decided} was decided on`)
    }),
    { numRuns: 300, seed: 20_263 },
  )
  t.ok(sent > 250)
  await assertUnharmed(t)
})

/** Resolves with the status once the gateway has written its line about the request. */
function call(path: string, headers: readonly string[]): Promise<number> {
  const lines = gateway.log.length
  return new Promise((resolve, reject) => {
    const req = request({ port: gateway.port, path, headers, agent: false }, res => {
      res.resume().on('end', async () => {
        while (gateway.log.length === lines) await new Promise(setImmediate)
        resolve(res.statusCode ?? 0)
      })
    })
    req.on('error', reject).end()
  })
}
