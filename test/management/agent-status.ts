import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t)

const by = { actor: 'gateway', requestId: null }

t.test('each operation changes the status, and the next call of the agent feels it', async t => {
  const { call, admin, person, registry } = control
  const auditor = await person('auditor')
  const steps = [
    ['deactivate', 'Inactive', 'agent_inactive'],
    ['activate', 'Active', undefined],
    ['quarantine', 'Quarantined', 'agent_quarantined'],
    ['lift-quarantine', 'Active', undefined],
    ['lift-quarantine', 'Active', undefined],
    ['revoke', 'Revoked', 'agent_revoked'],
  ] as const
  for (const [verb, status, code] of steps) {
    const answer = await call('POST', `/agents/${auditor.agent.id}/${verb}`, { token: admin.token })
    t.match(answer, { status: 200, text: '' }, verb)
    t.equal(registry.get(auditor.agent.id)?.status, status)
    const next = await call('GET', '/agents', { token: auditor.token })
    if (code === undefined) t.equal(next.status, 200)
    else t.match(next, { status: 403, json: { code } })
  }
  const again = await call('POST', `/agents/${auditor.agent.id}/activate`, { token: admin.token })
  t.match(again, { status: 409, json: { code: 'wrong_state' } })
})

t.test('an agent that is not there is 404', async t => {
  const { call, admin } = control
  for (const verb of ['activate', 'deactivate', 'quarantine', 'lift-quarantine', 'revoke'])
    t.match(await call('POST', `/agents/x/${verb}`, { token: admin.token }), { status: 404 }, verb)
})

t.test('a quarantined agent cannot lift its own quarantine', async t => {
  const { call, person, registry } = control
  const other = await person('admin')
  await registry.transition(other.agent.id, 'quarantine', by)
  const { status } = await call('POST', `/agents/${other.agent.id}/lift-quarantine`, { token: other.token })
  t.equal(status, 403)
  t.equal(registry.get(other.agent.id)?.status, 'Quarantined')
})

t.test('the last active admin stays one, by whatever operation', async t => {
  const { call, admin, person, registry } = await startControl(t)
  const { id } = admin.agent
  const operations = [
    ...['deactivate', 'quarantine', 'revoke'].map(verb => ['POST', `/agents/${id}/${verb}`] as const),
    ['PUT', `/agents/${id}/roles`, { roles: ['reviewer'] }] as const,
    ['DELETE', `/agents/${id}`] as const,
  ]
  for (const [method, path, body] of operations) {
    const answer = await call(method, path, { token: admin.token, body })
    t.match(answer, { status: 409, json: { code: 'last_admin', detail: /another agent an admin first/ } }, path)
  }
  t.match(registry.get(id), { status: 'Active', roles: ['admin'] })
  const other = await person('admin')
  t.equal((await call('POST', `/agents/${id}/deactivate`, { token: admin.token })).status, 200)
  t.match(await call('DELETE', `/agents/${other.agent.id}`, { token: other.token }), { status: 409 })
})
