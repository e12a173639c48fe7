import t from 'tap'
import { detail, refuseStatus, summarise, type Transition, transitions } from '../../src/agents/agent.ts'
import { isRefusal } from '../../src/base/refusals.ts'
import type { AgentStatus } from '../../src/storage/store.ts'
import { by, openBench } from '../fixtures/registry.ts'

const statuses: readonly AgentStatus[] = ['Active', 'Inactive', 'Quarantined', 'Revoked']
const roads: Readonly<Record<AgentStatus, readonly Transition[]>> = {
  Active: [],
  Inactive: ['deactivate'],
  Quarantined: ['quarantine'],
  Revoked: ['revoke'],
}
const expected: Readonly<Record<AgentStatus, Partial<Record<Transition, AgentStatus>>>> = {
  Active: { deactivate: 'Inactive', quarantine: 'Quarantined', revoke: 'Revoked' },
  Inactive: { activate: 'Active', quarantine: 'Quarantined', revoke: 'Revoked' },
  Quarantined: { liftQuarantine: 'Active', revoke: 'Revoked' },
  Revoked: {},
}

t.test('each transition leads from each status where the table says, or is refused with nothing changed', async t => {
  const { registry, agent, reopen } = await openBench()
  for (const status of statuses) {
    for (const transition of Object.keys(transitions) as Transition[]) {
      const { id } = await agent()
      for (const step of roads[status]) await registry.transition(id, step, by)
      const result = await registry.transition(id.toUpperCase(), transition, by)
      const to = expected[status][transition]
      const title = `${transition} from ${status}`
      if (to === undefined) t.match(result, { refusal: 'wrong_state', status: 409 }, title)
      else t.match(result, { status: to }, title)
      t.equal(registry.get(id)?.status, to ?? status, title)
    }
  }
  const stored = await reopen()
  const items = registry.values()
  t.strictSame(
    items.map(one => stored.get(one.id)?.status),
    items.map(one => one.status),
  )
})

t.test('a transition of an unknown agent is refused', async t => {
  const { registry } = await openBench()
  const result = await registry.transition('00000000-0000-4000-8000-000000000000', 'revoke', by)
  t.match(result, { refusal: 'not_found', status: 404 })
})

t.test('each transition is on the audit trail with who, before and after', async t => {
  const { registry, agent, store } = await openBench()
  const { id } = await agent()
  await registry.transition(id, 'quarantine', { actor: 'admin-id', requestId: 'r-9' })
  const { items } = await store.audit.list({ page: 1, pageSize: 1 })
  t.match(items[0], {
    actor: 'admin-id',
    requestId: 'r-9',
    action: 'agent.quarantine',
    subject: id,
    details: { before: { status: 'Active' }, after: { status: 'Quarantined' } },
  })
})

t.test('an agent that is not active is refused with a code of its own', async t => {
  t.equal(refuseStatus('Active'), undefined)
  t.match(refuseStatus('Inactive'), { refusal: 'agent_inactive', status: 403 })
  t.match(refuseStatus('Quarantined'), { refusal: 'agent_quarantined', status: 403 })
  t.match(refuseStatus('Revoked'), { refusal: 'agent_revoked', status: 403 })
  t.equal(isRefusal(refuseStatus('Revoked')), true)
})

t.test('summary and detail have the fields of the specification and no secret', async t => {
  const { agent, clock } = await openBench()
  const made = await agent({ name: 'n', ownerId: 'o', policyName: 'p', externalSubject: 's', tags: { a: 'b' } })
  const summary = { id: made.id, name: 'n', ownerId: 'o', status: 'Active', policyName: 'p', trustScore: 0.5 }
  t.strictSame(summarise(made, clock.now()), summary)
  t.strictSame(detail(made, clock.now()), {
    ...summary,
    roles: ['agent'],
    externalSubject: 's',
    tags: { a: 'b' },
    createdAt: '2026-01-05T10:00:00.000Z',
    recording: null,
  })
})
