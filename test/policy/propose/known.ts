/** Which conditions all requests of a shape answer alike. */
import t from 'tap'
import { type KeptShape, keptOf } from '../../../src/policy/propose/kept.ts'
import { knownBy } from '../../../src/policy/propose/known.ts'
import type { RequestDescription } from '../../../src/policy/request/describe.ts'
import { described, policyOf } from '../../fixtures/rulebook.ts'

type Request = Partial<RequestDescription['request']>

const kept = (request: Request, isWhole = true): KeptShape => {
  const url = 'https://api.example/v1/items?page=2'
  return keptOf(described({ request: { url, ...request } }), isWhole)!.shape
}

function isKnown(shape: KeptShape, field: string, operator = 'exists', value = 'true'): boolean {
  const { rules } = policyOf({
    name: 'p',
    rules: [{ name: 'r', effect: 'Deny', conditions: [{ field, operator, value }] }],
  })
  const [condition] = rules[0]!.conditions
  return condition !== undefined && 'field' in condition && knownBy(shape)(condition)
}

const read = kept({})
const write = kept({ method: 'POST', body: { amount: 1, to: { id: 1 } } })

t.test('the head is known but for its header fields and values of the query', t => {
  for (const field of ['input.method', 'input.origin', 'input.path', 'input.pathSegments[0]', 'agent.id'])
    t.ok(isKnown(read, field), field)
  for (const field of ['input.headers.x-a', 'input.query.page', 'input.query.PAGE', 'input.queryString', 'input.url'])
    t.notOk(isKnown(read, field), field)
  t.ok(isKnown(read, 'input.query.other'), 'no request of the shape has it')
  t.notOk(isKnown(read, 'input.query["page"]'))
  const without = kept({ url: 'https://api.example/v1/items' })
  for (const field of ['input.query.page', 'input.queryString', 'input.url']) t.ok(isKnown(without, field), field)
  t.ok(isKnown(read, 'input.queryString', 'matches', '^(?:page)(?:=[^&;]*)?(?:&(?:page)(?:=[^&;]*)?)*$'))
  t.notOk(isKnown(read, 'input.queryString', 'matches', '^page=1$'))
  t.end()
})

t.test('of a body its names are known, of no body everything', t => {
  t.ok(isKnown(read, 'input.body.amount'))
  for (const field of ['input.contentType', 'input.bodyInfo.kind', 'mcp.tool', 'input.body.other'])
    t.ok(isKnown(write, field), field)
  t.ok(isKnown(write, 'input.body.@keys', 'in', '["amount"]'))
  t.ok(isKnown(write, 'input.body.@size', 'eq', '2'))
  for (const field of ['input.body.amount', 'input.body.to.id', 'input.body.to.@keys', 'input.bodyText'])
    t.notOk(isKnown(write, field), field)
  const text = kept({ method: 'POST', body: 'text', headers: { 'content-type': 'text/plain' } })
  t.notOk(isKnown(text, 'input.body.amount'))
  t.end()
})

t.test('of a body that was not recorded nothing is known but the head', t => {
  const unread = kept({ method: 'POST', body: { a: 1 } }, false)
  t.ok(isKnown(unread, 'input.host'))
  for (const field of ['input.query.other', 'input.body.a', 'input.contentType']) t.notOk(isKnown(unread, field), field)
  const { names: _, ...rest } = read
  t.ok(isKnown({ ...rest, names: [] }, 'input.query.page'), 'a shape without a list of parameters has none')
  t.end()
})
