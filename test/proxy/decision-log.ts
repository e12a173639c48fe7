/** T35: what a request says reaches neither the log nor the trail by way of the reason of its decision. */

import t from 'tap'
import { type Line, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const origin = await startOrigin(t)
const canary = 'cnry7f31d09b'

/** Rules that match on what a request carries; each denies, holds or cannot be evaluated. */
const rules = [
  ...['sig', 'key', 'plain'].map(name => rule(`query-${name}`, 'Deny', `input.query.${name}`, 'exists', 'true')),
  rule('url', 'Hitl', 'input.url', 'contains', '/by-url'),
  rule('query-string', 'Deny', 'input.queryString', 'contains', 'other='),
  rule('header', 'Deny', 'input.headers.x-note', 'startsWith', 'cnry'),
  rule('text', 'Deny', 'input.bodyText', 'contains', 'needle'),
  rule('member', 'Hitl', 'input.body.note', 'startsWith', 'cnry'),
  rule('amount', 'Deny', 'input.body.amount', 'gt', '100'),
]

function rule(name: string, effect: string, field: string, operator: string, value: string) {
  return { name, effect, conditions: [{ field, operator, value }] }
}

const json = { 'content-type': 'application/json' }
/** Path and query, and what else is sent; the rule that decides. */
const requests: [string, { headers?: Record<string, string>; body?: string }, string][] = [
  [`/?sig=${canary}`, {}, 'query-sig'],
  [`/?key=${canary}`, {}, 'query-key'],
  [`/?plain=${canary}`, {}, 'query-plain'],
  [`/by-url?token=${canary}`, {}, 'url'],
  [`/?other=${canary}`, {}, 'query-string'],
  ['/', { headers: { 'x-note': canary } }, 'header'],
  ['/', { body: `a needle of ${canary}` }, 'text'],
  ['/', { headers: json, body: JSON.stringify({ note: canary }) }, 'member'],
  ['/', { headers: json, body: JSON.stringify({ amount: { [canary]: 1 } }) }, 'amount'],
  ['/', { headers: { ...json, 'content-encoding': canary }, body: '{}' }, 'text'],
  ['/', { headers: json, body: `{"${canary}": 1, "${canary}": 2}` }, 'amount'],
]

async function send(gateway: TestGateway): Promise<readonly Line[]> {
  const name = await gateway.policy({ name: 'strict', default: 'Allow', rules })
  const { token } = await gateway.agent({ policyName: name })
  for (const [path, { headers = {}, body }] of requests) {
    const method = body === undefined ? 'GET' : 'POST'
    const { status } = await gateway.proxy(token, origin.url + path, { method, headers, ...(body && { body }) })
    t.ok(status === 403 || status === 202, `${path} ${body}: ${status}`)
  }
  return gateway.exchanges(requests.length)
}

const quiet = { Trust: { QuarantineDenials: 0, QuarantineBelow: 0 } }

t.test('reasons name fields, operators and operands, and nothing that the request said', async t => {
  const gateway = await startGateway(t, { config: quiet })
  const lines = await send(gateway)
  t.strictSame(lines.map(line => line.rule).sort(), requests.map(([, , decider]) => decider).sort())
  for (const line of lines) {
    t.match(line, { reason: /input\./ })
    t.notMatch(JSON.stringify(line), canary)
    t.equal(line.matched, undefined)
  }
  const trail = await gateway.manage('GET', '/audit?pageSize=100')
  t.equal(trail.status, 200)
  t.notMatch(trail.text, canary)
})

t.test('Logging:Values shows the values that a rule saw, secrets redacted', async t => {
  const gateway = await startGateway(t, { config: { ...quiet, Logging: { Values: true } } })
  const shown = new Map((await send(gateway)).map(line => [line.rule, line.matched]))
  t.strictSame(shown.get('header'), [`input.headers.x-note startsWith "cnry" (was "${canary}")`])
  t.strictSame(shown.get('member'), [`input.body.note startsWith "cnry" (was "${canary}")`])
})
