/** Threats T11, T45 of SECURITY.md. */

import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t, {}, { alone: 'the store of one gateway fails' })
const { call, admin, agent, registry, book, store, suspend, upstream, person } = control
const bot = await agent({ policyName: 'p' })
const helper = await person('agent')
const id = await suspend(bot)
await book.create({ name: 'p' }, { actor: 'x', requestId: null })
await book.create({ name: 'q' }, { actor: 'x', requestId: null })
const before = { agents: registry.values(), policies: book.list() }
await store.close()

const registration = { name: 'a', ownerId: 'o', clientSecret: 's' }
const changes: [string, string, object?][] = [
  ['POST', '/agents', registration],
  ['DELETE', `/agents/${bot.id}`],
  ['PUT', `/agents/${bot.id}/policy`, { policyName: 'q' }],
  ['PUT', `/agents/${bot.id}/roles`, { roles: ['admin'] }],
  ['POST', `/agents/${bot.id}/revoke`],
  ['POST', `/agents/${bot.id}/quarantine`],
  ['POST', `/agents/${bot.id}/deactivate`],
  ['POST', '/policies', { name: 'r' }],
  ['PUT', '/policies/p', { description: 'new' }],
  ['DELETE', '/policies/q'],
  ['POST', `/hitl/${id}/approve`],
  ['POST', `/hitl/${id}/deny`],
  ['GET', `/hitl/${id}`],
  ['GET', '/hitl'],
]

t.test('without its store the gateway does nothing that it could not record, and says so', async t => {
  for (const [method, path, body] of changes)
    t.match(
      await call(method, path, { token: admin.token, ...(body === undefined ? {} : { body }) }),
      { status: 503, json: { code: 'store_unavailable', requestId: /^request-/ } },
      `${method} ${path}`,
    )
  t.strictSame({ agents: registry.values(), policies: book.list() }, before)
  t.equal(upstream.sent.length, 0)
})

t.test('a refusal that cannot be recorded is no permission', async t => {
  t.match(await call('GET', '/agents', { token: helper.token }), { status: 503 })
})

t.test('what is in memory is still read, and the health check fails', async t => {
  t.match(await call('GET', '/agents', { token: admin.token }), { status: 200 })
  t.match(await call('GET', '/policies/p', { token: admin.token }), { status: 200 })
  t.match(await call('GET', '/health'), { status: 503, json: { status: 'Unhealthy' } })
})
