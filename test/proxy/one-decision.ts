/**
 * One table of requests through everything that decides: a call, an explanation, a test of the policy, the replay of the
 * log, and the decision on an approved request. They read the same facts, so they must not differ.
 */
import { writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { createClock } from '../fixtures/clock.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const rule = (effect: string, field: string, operator: string, value: unknown) => ({
  name: `${effect} ${field} ${operator}`,
  effect,
  conditions: [{ field, operator, value }],
})

const rules = [
  rule('Deny', 'input.host', 'eq', 'denied.example'),
  rule('Hitl', 'input.host', 'endsWith', '.held.example'),
  rule('Deny', 'input.destinationClass', 'eq', 'private'),
  rule('Deny', 'input.destinationIp', 'ipIn', '127.0.0.2/32'),
  rule('Deny', 'input.path', 'startsWith', '/admin'),
  rule('Hitl', 'input.query.confirm', 'eq', 'true'),
  rule('Deny', 'input.headers.x-mode', 'eq', 'danger'),
  rule('Hitl', 'input.body.amount', 'gt', 100),
]

interface Request {
  readonly method?: string
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** What the name stands for; 127.0.0.1 when absent. */
  readonly destinationIp?: string
}

const origin = await startOrigin(t)
const at = (host: string, path = '/') => `http://${host}:${origin.port}${path}`
const json = { 'Content-Type': 'application/json' }
const post = (body: string): Request => ({ method: 'POST', url: at('api.example'), headers: json, body })

type Effect = 'Allow' | 'Deny' | 'Hitl'
const cases: readonly (readonly [title: string, effect: Effect, request: Request])[] = [
  ['a name that no rule has', 'Allow', { url: at('api.example') }],
  ['a denied name', 'Deny', { url: at('denied.example') }],
  ['a denied name in capitals', 'Deny', { url: at('DENIED.example') }],
  ['a name below a domain', 'Hitl', { url: at('a.held.example') }],
  ['the domain itself', 'Allow', { url: at('held.example') }],
  ['a name with a private address', 'Deny', { url: at('private.example'), destinationIp: '10.0.0.1' }],
  ['a name with an address in a range', 'Deny', { url: at('range.example'), destinationIp: '127.0.0.2' }],
  ['an address in a range', 'Deny', { url: at('127.0.0.2') }],
  ['a denied path', 'Deny', { url: at('api.example', '/admin/users') }],
  ['a denied path behind an encoded letter', 'Deny', { url: at('api.example', '/%61dmin') }],
  ['a denied path behind doubled slashes', 'Deny', { url: at('api.example', '//admin') }],
  ['a query that holds', 'Hitl', { url: at('api.example', '/x?confirm=true') }],
  ['an encoded query that holds', 'Hitl', { url: at('api.example', '/x?%63onfirm=tru%65') }],
  ['a header that denies', 'Deny', { url: at('api.example'), headers: { 'X-Mode': 'danger' } }],
  ['a small amount', 'Allow', post('{"amount": 100}')],
  ['a large amount', 'Hitl', post('{"amount": 1e3}')],
  ['an amount given twice', 'Hitl', post('{"amount": 1, "amount": 1000}')],
  ['a body that is cut off', 'Hitl', post('{"amount": 1')],
]

const addresses = new Map(cases.map(([, , { url, destinationIp }]) => [new URL(url).hostname, destinationIp]))
const policy = { name: 'tried', default: 'Allow', rules }
const clock = createClock(Date.UTC(2026, 0, 5, 12))
const gateway = await startGateway(t, {
  clock,
  lookup: async name => [addresses.get(name) ?? '127.0.0.1'],
})
await gateway.policy(policy)
await gateway.policy({ name: 'hold', default: 'Hitl' })

const initOf = ({ method = 'GET', headers = {}, body }: Request): RequestInit => ({
  method,
  headers,
  ...(body === undefined ? {} : { body }),
})

const effectOf = (status: number, code: string | null): Effect | string =>
  status === 202
    ? 'Hitl'
    : code === 'policy_denied'
      ? 'Deny'
      : code === null || code.startsWith('upstream')
        ? 'Allow'
        : code

/** As an explanation and a test take it. */
const described = (request: Request) => {
  const { hostname } = new URL(request.url)
  return { ...request, destinationIp: request.destinationIp ?? (isIP(hostname) ? hostname : '127.0.0.1') }
}

for (const [title, effect, request] of cases) {
  t.test(`live, explained and approved: ${title}`, async t => {
    const { token } = await gateway.agent({ policyName: policy.name })
    const live = await gateway.proxy(token, request.url, initOf(request))
    t.equal(effectOf(live.status, live.headers.get('gateway-error')), effect, 'live')

    const explained = await gateway.manage('POST', `/policies/${policy.name}/explain`, { request: described(request) })
    t.equal(JSON.parse(explained.text).result?.decision, effect, `explained: ${explained.text}`)

    const { id, token: held } = await gateway.agent({ policyName: 'hold' })
    const waiting = await gateway.proxy(held, request.url, initOf(request))
    t.equal(waiting.status, 202)
    await gateway.manage('PUT', `/agents/${id}/policy`, { policyName: policy.name })
    const approval = await gateway.manage('POST', `/hitl/${waiting.headers.get('gateway-hitl-id')}/approve`)
    const decided = effectOf(approval.status, approval.headers.get('gateway-error'))
    // What asks for an approval has one.
    t.equal(decided, effect === 'Deny' ? 'Deny' : 'Allow', 'approved')
  })
}

t.test('tests of the policy, and the replay of the log, say the same', async t => {
  const tests = cases.map(([name, decision, request]) => ({ name, request: described(request), expect: { decision } }))
  const folder = testdir(t, {
    'tried.yaml': JSON.stringify(policy),
    'tried.test.yaml': JSON.stringify({ policy: policy.name, tests }),
  })
  const tested = fakeShell(['policy', 'test', folder])
  t.equal(await runCommand(tested), 0, tested.printed.join('\n'))
  t.equal(tested.printed.at(-1), `${cases.length} passed, 0 failed`)

  const lines = cases.map(([, decision, request]) => ({ decision, policy: policy.name, request: described(request) }))
  const log = join(folder, 'log')
  writeFileSync(log, lines.map(line => `${JSON.stringify(line)}\n`).join(''))
  const replayed = fakeShell(['policy', 'replay', '--policy', join(folder, 'tried.yaml'), '--log', log])
  t.equal(await runCommand(replayed), 0)
  t.strictSame(replayed.printed, [`0 changed, ${cases.length} the same, 0 depend on the body, 0 not understood`])
})
