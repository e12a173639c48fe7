/** What `unexplained` finds in histories that are wrong in one place. */

import t from 'tap'
import type { AuditRecord } from '../../src/storage/store.ts'
import { unexplained } from '../fixtures/fleet/history.ts'
import type { About, Call } from '../fixtures/fleet/ledger.ts'
import { careful } from '../fixtures/review.ts'

const agent = 'bot'
const upstream = 'http://u.test'
const limits = { claimMs: 2_500, arrivalMs: 500 }

interface Step {
  /** What the call is recorded as; its place is that among the steps. */
  readonly records?: readonly (readonly [action: string, subject: string, details?: object])[]
  /** The place of the call that these records are of, if it is another one. */
  readonly by?: number
  /** Calls without one tell nothing. */
  readonly status?: number
  readonly method?: string
  readonly path?: string
  readonly about?: Partial<About>
  readonly headers?: Readonly<Record<string, string>>
  readonly text?: string
  /** When its request reached the upstream; calls begin and end at their place in seconds. */
  readonly sent?: number
}

/** What is wrong with calls that were made one after the other, a second each. */
function wrongIn(...steps: readonly Step[]): readonly string[] {
  const seconds = (place: number) => place * 1_000
  const records = steps.flatMap(({ records = [], by }, place) =>
    records.map(([action, subject, details = {}]) => ({
      action,
      subject,
      details,
      place,
      requestId: `request ${by ?? place}`,
    })),
  )
  const calls = steps.map(({ method = 'GET', path = '', about, status = 0, headers, text = '' }, place) => ({
    ...{ at: 'A', method, path, status, text, begun: seconds(place), ended: seconds(place) + 900 },
    ...{ does: 'other' as const, ...about },
    headers: new Headers({ ...headers, 'Gateway-Request-Id': `request ${place}` }),
  }))
  const sent = steps.flatMap(({ sent, path = '', method = 'GET' }) =>
    sent === undefined
      ? []
      : [{ agent, method, target: new URL(path.slice('/proxy/'.length)).pathname, at: seconds(sent) }],
  )
  const trail = records.map(({ place, ...record }, index) => ({
    ...record,
    ...{ seq: index + 1, at: performance.timeOrigin + seconds(place), actor: agent },
  }))
  // The hashes of the trail do not matter here.
  return unexplained({ records: trail as unknown as AuditRecord[], calls: calls as Call[], sent, ...limits })
}

const registered: Step = {
  ...{ method: 'POST', path: '/agents', status: 201 },
  records: [['agent.register', agent, { after: { status: 'Active', policyName: careful.name } }]],
}
const proxied = (method: string, place: string, more: Step): Step => ({
  ...{ method, path: `/proxy/${upstream}/${place}`, about: { does: 'proxy', agent } },
  ...more,
})
const held = (id: string, more: Step = {}): Step =>
  proxied('POST', id, {
    ...{ status: 202, headers: { 'Gateway-Hitl-Id': id } },
    records: [['hitl.suspend', id, { url: `${upstream}/${id}` }]],
    ...more,
  })
const enough = { approvals: 1, approvalsNeeded: 1 }
const verdict = (action: string, id: string, more: Step = {}): Step => ({
  ...{ method: 'POST', path: `/hitl/${id}/${action}`, status: 200, about: { does: 'approve', held: id } },
  records: [[`hitl.${action}`, id, enough]],
  ...more,
})
const deactivated: Step = {
  ...{ method: 'POST', path: `/agents/${agent}/deactivate`, status: 200 },
  records: [['agent.deactivate', agent, { after: { status: 'Inactive' } }]],
}
const grant = { agentId: agent, policyName: careful.name, rule: 'posts', method: 'POST', maxUses: 1, uses: 0 }
const granted = verdict('approve', 'h1', {
  records: [
    ['hitl.approve', 'h1', enough],
    ['hitl.grant', 'g1', { grant }],
  ],
})
const used = (place: string, uses: number, more: Step = {}): Step =>
  proxied('POST', place, { status: 200, records: [['hitl.grant.use', 'g1', { path: `/${place}`, uses }]], ...more })
const ended: Step = {
  ...{ method: 'DELETE', path: '/hitl/grants/g1', status: 200 },
  records: [['hitl.grant.revoke', 'g1']],
}
const queue = (...ids: readonly string[]): Step => ({
  ...{ path: `/hitl?agentId=${agent}`, status: 200, text: JSON.stringify(ids.map(id => ({ id }))) },
})

t.test('a history that can be is explained', async t => {
  const steps = [
    registered,
    held('h1'),
    queue('h1'),
    granted,
    used('p1', 1, { sent: 4.1 }),
    held('h2'),
    ended,
    deactivated,
  ]
  t.strictSame(
    wrongIn(...steps, proxied('GET', 'p2', { status: 403, headers: { 'Gateway-Error': 'agent_inactive' } })),
    [],
  )
})

const wrong: Readonly<Record<string, readonly Step[]>> = {
  'an agent is served after its deactivation was answered': [deactivated, proxied('GET', 'p1', { status: 200 })],
  'a request passes that must be held': [proxied('POST', 'p1', { status: 200 })],
  'a request is denied by no policy': [
    proxied('GET', 'p1', { status: 403, headers: { 'Gateway-Error': 'policy_denied' } }),
  ],
  'a request is held though a grant covers it': [held('h1'), granted, held('h2')],
  'a grant is used after its removal': [held('h1'), granted, ended, used('p1', 1)],
  'a grant is used more often than it may be': [held('h1'), granted, used('p1', 1), used('p2', 2)],
  'a request is denied after its approval': [held('h1'), verdict('approve', 'h1'), verdict('deny', 'h1')],
  'an approval is refused though nobody has decided': [
    held('h1'),
    verdict('approve', 'h1', { status: 409, records: [] }),
  ],
  'the queue lacks a request that waits': [held('h1'), queue()],
  'the queue has a request that was denied': [held('h1'), verdict('deny', 'h1'), queue('h1')],
  'a call that waited is told of a denial that nobody made': [
    held('h1', { status: 403, headers: { 'Gateway-Error': 'hitl_denied' }, text: '{"hitlId":"h1"}' }),
  ],
  'a call that waited gets an answer though nobody has approved': [held('h1', { status: 200 })],
  'a change is refused in a state that allows it': [{ ...deactivated, status: 409, records: [] }],
  'a quarantine is lifted without a record': [
    deactivated,
    { method: 'POST', path: `/agents/${agent}/lift-quarantine`, status: 200 },
  ],
  'a held request is sent without a claim': [held('h1', { sent: 1.5 })],
  'a claim is used after half of its lease': [held('h1', { sent: 6 }), verdict('approve', 'h1')],
  'a request passes by a grant long after its removal': [held('h1'), granted, used('p1', 1, { sent: 6 }), ended],
  'a refused call has reached the upstream': [
    deactivated,
    proxied('POST', 'p1', { status: 403, headers: { 'Gateway-Error': 'agent_inactive' }, sent: 2.1 }),
  ],
}

for (const [title, steps] of Object.entries(wrong)) {
  t.test(`found: ${title}`, async t => {
    const found = wrongIn(registered, ...steps)
    t.equal(found.length, 1, found.join('\n'))
  })
}

t.test('found: a call is recorded before one that had ended when it began', async t => {
  const late: Step = { by: 1, records: [['hitl.suspend', 'h1', { url: `${upstream}/h1` }]] }
  const found = wrongIn(registered, held('h1', { records: [] }), held('h2'), late)
  t.ok(
    found.some(one => one.startsWith('recorded before') && one.includes('h2')),
    found.join('\n'),
  )
})
