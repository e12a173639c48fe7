import t from 'tap'
import { parseTarget } from '../../src/base/target.ts'
import { startControl } from '../fixtures/control.ts'

const { call, admin, book } = await startControl(t)
const token = admin.token
const condition = { field: 'input.method', operator: 'eq', value: 'DELETE' }
const rules = [{ name: 'no-deletes', effect: 'Deny', conditions: [condition] }]
await book.create({ name: 'p', default: 'Allow', rules }, { actor: 'x', requestId: null })

t.test('the decision on a described request is explained, rule by rule', async t => {
  const explain = (request: object) => call('POST', '/policies/p/explain', { token, body: { request } })
  t.match(await explain({ method: 'DELETE', url: 'https://api.example/x' }), {
    status: 200,
    json: { result: { decision: 'Deny', rule: 'no-deletes' }, rules: [{ rule: 'no-deletes', value: 'true' }] },
  })
  t.match(await explain({ url: 'https://api.example/x', headers: { a: ['1', '2'] }, body: { b: 1 } }), {
    status: 200,
    json: { result: { decision: 'Allow', rule: null }, rules: [{ rule: 'no-deletes', value: 'false' }] },
  })
})

t.test('what cannot be a request is 400 and named', async t => {
  const explain = (body: object) => call('POST', '/policies/p/explain', { token, body })
  const request = { url: 'https://api.example/x' }
  const cases: [object, string][] = [
    [{}, 'request'],
    [{ request: {} }, 'request.url'],
    [{ request, tiem: 'x' }, 'tiem'],
    [{ request: { ...request, headers: { a: 1 } } }, 'request.headers.a'],
    [{ request, agent: { claims: 'x' } }, 'agent.claims'],
    [{ request, phase: 'tail' }, 'phase'],
    [{ request, riskThreshold: 2 }, 'riskThreshold'],
  ]
  for (const [body, field] of cases) {
    const { status, json } = await explain(body)
    t.match({ status, json }, { status: 400, json: { code: 'invalid_body' } }, field)
    t.ok(
      json.errors.some((error: { field: string }) => error.field === field),
      field,
    )
  }
  for (const url of ['', 'ftp://x/', '/x', 'https://'])
    t.match(await explain({ request: { url } }), { status: 400 }, url)
  t.match(await explain({ request, time: 'soon' }), { status: 400 })
})

t.test('a policy that is not there is 404', async t => {
  const body = { request: { url: 'https://api.example/' } }
  t.match(await call('POST', '/policies/nope/explain', { token, body }), { status: 404 })
})

t.test('a URL that /proxy refuses is refused with the same code and reason', async t => {
  const urls = [
    'https://api.example/a/../b',
    'https://api.example/a/%2E%2e/b',
    'https://api.example./',
    'https://127.1/',
    'https://[::ffff:7f00:1]/',
    'https://user@api.example/',
    'https://api.example/#x',
    'https://api.example/a b',
    'https:/api.example/',
    'https://api.example:0/',
    'ftp://x/',
    '',
  ]
  for (const url of urls) {
    const { status, json } = await call('POST', '/policies/p/explain', { token, body: { request: { url } } })
    t.match(
      { status, code: json.code, detail: json.detail },
      { status: 400, code: 'invalid_target', detail: parseTarget(url) },
      url,
    )
  }
})
