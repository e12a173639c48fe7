import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const body = { field: 'input.body.x', operator: 'eq', value: '1' }
const path = (value: string) => ({ field: 'input.path', operator: 'eq', value })
const rules = [
  { name: 'ask', effect: 'Hitl', conditions: [path('/ask')] },
  { name: 'look', effect: 'Deny', conditions: [path('/look'), body] },
]

t.test('requests without the fields of a body need none, on every road, and leave their connection open', async t => {
  const origin = await startOrigin(t)
  const gateway = await startGateway(t)
  const { id, token } = await gateway.agent({
    policyName: await gateway.policy({ name: 'p', default: 'Allow', rules }),
  })
  const raw = await openRaw(t, gateway.port)
  const agent = `Gateway-Authorization: Bearer ${token}`
  const admin = `Authorization: Bearer ${gateway.adminToken}`
  const ask = async (line: string, field: string, answer: RegExp) => {
    raw.write(`${line} HTTP/1.1\r\nHost: gateway\r\n${field}\r\n\r\n`)
    t.match(await raw.until(answer), answer, line)
  }
  await ask(`POST /proxy/${origin.url}/plain`, agent, /^HTTP\/1.1 200 .*upstream$/s)
  await ask(`POST /proxy/${origin.url}/look`, agent, /^HTTP\/1.1 200 .*upstream.*200 .*upstream$/s)
  await ask(`POST /proxy/${origin.url}/ask`, agent, /202 Accepted.*\r\n\r\n.+$/s)
  await ask('POST /agents', admin, /"code":"invalid_body".*}$/s)
  await ask(`POST /agents/${id}/quarantine`, admin, /invalid_body.*HTTP\/1.1 200/s)
  await ask(`GET /proxy/${origin.url}/`, agent, /"code":"agent_quarantined".*}$/s)
  t.strictSame(
    origin.seen.map(({ method, target, body }) => [method, target, String(body)]),
    [
      ['POST', '/plain', ''],
      ['POST', '/look', ''],
    ],
  )
})
