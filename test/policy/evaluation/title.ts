import t from 'tap'
import { decision, rulebookOf } from '../../fixtures/rulebook.ts'

const url = 'https://api.shop.example/v1/refunds?to=ann'

/** The title that a rule with this text gives a POST with this body. */
function titleOf(title: string, body: unknown, headers: Record<string, string> = {}): string | null {
  const rules = [{ name: 'r', effect: 'Hitl', title, conditions: [] }]
  return decision(rulebookOf({ name: 'p', rules }), { request: { method: 'POST', url, headers, body } }).title
}

t.test('a title has the values of the request in the place of its fields', async t => {
  const body = { amount: 250, currency: 'EUR', order: { items: [{ id: 'a' }, { id: 'b' }] }, note: null }
  const titles = [
    ['Refund {input.body.amount} {input.body.currency}', 'Refund 250 EUR'],
    ['{input.body.order.items[*].id} of {input.body.order}', 'a, b of (object)'],
    ['{input.method} {input.path} to {input.query.to}', 'POST /v1/refunds to ann'],
    ['{{{input.body.amount}}}', '{250}'],
    ['{input.body["a}b"]} and {input.body.note}', '(missing) and null'],
    ['no field', 'no field'],
  ]
  for (const [title, shown] of titles) t.equal(titleOf(title!, body), shown, title!)
})

t.test('a title shows numbers as they are sent', async t => {
  const json = { 'content-type': 'application/json' }
  t.equal(titleOf('{input.body.amount}', '{"amount":12345678901234567891}', json), '12345678901234567891')
})

t.test('what cannot be read is a question mark', async t => {
  const json = { 'content-type': 'application/json' }
  t.equal(titleOf('Refund {input.body.amount}', '{"amount":1,"amount":2}', json), 'Refund ?')
  t.equal(titleOf('Refund {input.body.amount}', '{"amount":', json), 'Refund ?')
})

t.test('secrets are marked by name and by detector, and nothing hides or reorders text', async t => {
  t.equal(titleOf('{input.body.password}', { password: 'hunter2' }), '[redacted]')
  t.equal(titleOf('{input.body.x}', { x: 'AKIAIOSFODNN7EXAMPLE' }), '[redacted: aws-access-key]')
  t.equal(titleOf('{input.body.x}', { x: 'a\u202eb\nc' }), 'a\\u{202e}b\\u{a}c')
})

t.test('a title has 120 characters at most', async t => {
  const shown = titleOf(`${'😀'.repeat(100)}{input.body.x}`, { x: 'y'.repeat(60) })
  t.equal([...(shown ?? '')].length, 120)
  t.match(shown, /y…$/)
})

t.test('a rule without a title, and a request that no rule holds, have none', async t => {
  const plain = { request: { method: 'POST', url, body: {} } }
  t.equal(decision(rulebookOf({ name: 'p', default: 'Hitl' }), plain).title, null)
  t.equal(
    decision(rulebookOf({ name: 'p', rules: [{ name: 'r', effect: 'Hitl', conditions: [] }] }), plain).title,
    null,
  )
})

t.test('the operation names what method and path do not show', async t => {
  const operationOf = (url: string, body: unknown, method = 'POST') =>
    decision(rulebookOf({ name: 'p', default: 'Hitl' }), { request: { method, url, body } }).operation
  const mcp = 'https://tools.example/mcp'
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'transfer', arguments: {} } }
  t.equal(operationOf(mcp, call), 'tools/call transfer')
  t.equal(operationOf(mcp, [call, { jsonrpc: '2.0', method: 'ping' }]), 'tools/call, ping transfer')
  t.equal(operationOf(mcp, { jsonrpc: '2.0', id: 1, method: 'ping' }), 'ping')
  const graphql = 'https://api.example/graphql'
  t.equal(operationOf(graphql, { query: 'mutation Harmless { pay(sum: 5) { id } }' }), 'mutation pay')
  t.equal(operationOf('https://api.openai.com/v1/chat/completions', { model: 'gpt-5', messages: [] }), 'openai gpt-5')
  t.equal(operationOf('https://api.example/things', { amount: 5 }), null)
  t.equal(operationOf('https://api.example/things', undefined, 'DELETE'), null)
  t.equal(operationOf(mcp, '{"jsonrpc":"2.0","method":"tools/call","method":"ping"}'), null, 'two readers')
})
