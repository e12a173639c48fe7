import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const { call, admin, agent, registry, book } = await startControl(t)
await book.create({ name: 'p' }, { actor: 'x', requestId: null })

t.test('a policy is assigned and taken away again', async t => {
  const bot = await agent()
  for (const policyName of ['p', null]) {
    const { status, text } = await call('PUT', `/agents/${bot.id}/policy`, { token: admin.token, body: { policyName } })
    t.strictSame({ status, text }, { status: 200, text: '' })
    t.equal(registry.get(bot.id)?.policyName, policyName)
  }
})

t.test('a policy that is not there is 400, and the assignment stays', async t => {
  const bot = await agent({ policyName: 'before' })
  for (const policyName of ['no-such-policy', '', '__proto__', 5]) {
    const body = { policyName }
    const { status, json } = await call('PUT', `/agents/${bot.id}/policy`, { token: admin.token, body })
    t.match({ status, json }, { status: 400, json: { code: 'invalid_body', errors: [{ field: 'policyName' }] } })
  }
  t.equal(registry.get(bot.id)?.policyName, 'before')
})

t.test('an agent that is not there is 404', async t => {
  const body = { policyName: 'p' }
  for (const id of ['00000000-0000-4000-8000-000000000000', 'x'])
    t.match(await call('PUT', `/agents/${id}/policy`, { token: admin.token, body }), { status: 404 })
})
