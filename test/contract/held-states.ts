import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { hitlEvents } from '../../src/base/hitl-events.ts'
import { refuse } from '../../src/base/refusals.ts'
import { outcomeOf } from '../../src/console/request/outcome.ts'
import type { ReplayResult } from '../../src/hitl/model.ts'
import { requests } from '../../src/telemetry/layout.ts'
import { eventually } from '../fixtures/gateway.ts'
import { answered, type Desk, openDesk, reviewer, suspended, verdict } from '../fixtures/hitl.ts'
import { testdir } from '../fixtures/testdir.ts'

const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
const [, table = ''] = /\| State \|.*\n\|---.*\n((?:\|.*\n)+)/.exec(read('docs/reviewing.md')) ?? []
const rows = table
  .trim()
  .split('\n')
  .map(row =>
    row
      .split('|')
      .map(cell => cell.trim())
      .slice(1, -1),
  )
const unquoted = (cell: string) => [...cell.matchAll(/`([^`]*)`/g)].map(([, word = '']) => word)

/** Brings a pending request into the state of a row. */
const paths: Readonly<Record<string, (desk: Desk, id: string) => Promise<unknown>>> = {
  Pending: async () => {},
  'In flight': async (desk, id) => {
    desk.answer = () => new Promise<ReplayResult>(() => {})
    void desk.queue.approve(id, verdict())
    await eventually(
      () => desk.sent.length,
      sent => sent > 0,
    )
  },
  Completed: async (desk, id) => {
    desk.answer = async () => answered('ok', 201)
    const approved = await desk.queue.approve(id, verdict())
    if ('kind' in approved && approved.kind === 'answered') await text(approved.body)
  },
  Failed: async (desk, id) => {
    desk.answer = async () => ({ kind: 'failed', refusal: refuse('upstream_failed') })
    await desk.queue.approve(id, verdict())
  },
  Unknown: async (desk, id) => {
    await paths['In flight']?.(desk, id)
    await desk.queue.giveUp()
  },
  'Pending again': async (desk, id) => {
    desk.answer = async () => ({ kind: 'notSent', refusal: refuse('circuit_open') })
    await desk.queue.approve(id, verdict())
  },
  Denied: (desk, id) => desk.queue.deny(id, verdict()),
  Withdrawn: (desk, id) => desk.queue.withdraw(id, { agentId: 'agent-1', requestId: 'req-2', cause: 'asked' }),
  Expired: async desk => {
    desk.clock.advance(3_600_001)
    await desk.queue.sweep()
  },
}

/** What the API, the events and the trail say of a request then. */
async function stateAfter(t: Test, path: (desk: Desk, id: string) => Promise<unknown>) {
  const desk = await openDesk({ directory: testdir(t) })
  t.teardown(() => desk.store.close())
  const id = await suspended(desk)
  await path(desk, id)
  const { items } = await desk.queue.history({ page: 1, pageSize: 1 })
  // Each is a view of the API: PastRequest or HitlRequest.
  const view = ((await desk.queue.get(id, reviewer)) ?? items[0]) as Parameters<typeof outcomeOf>[0]
  const trail = await desk.store.audit.list({ page: 1, pageSize: 1 }, { subject: id })
  return { view, event: desk.events.at(-1)?.type, entry: trail.items[0] }
}

const words = new Map(rows.map(([title = '', ...row]) => [title.replace(/[:,] .*| (?:by|without) .*/, ''), row]))

for (const [state, path] of Object.entries(paths)) {
  t.test(`${state}: the words of docs/reviewing.md are those of API, console, events and trail`, async t => {
    const [api = '', console, event = '', audit = ''] = words.get(state) ?? []
    const { view, event: type, entry } = await stateAfter(t, path)
    t.strictSame([view.status, String(view.replay)], unquoted(api))
    t.equal(outcomeOf({ ...view, people: {} }), console)
    t.strictSame([type, entry?.action], [...unquoted(event), ...unquoted(audit)])
    if (entry?.action === 'hitl.replay') t.equal(entry.details['outcome'], view.replay)
  })
}

t.test('a request of a restored backup is pending, and its earlier outcome unknown', async t => {
  const row = rows.find(([title]) => title?.includes('backup')) ?? []
  t.strictSame(unquoted(row[1] ?? ''), ['Pending', 'unknown'])
  t.equal(outcomeOf({ status: 'Pending', replay: 'unknown', responseStatus: null }), row[2])
})

t.test('the table has every status, every outcome of a sending and every event of a state', async t => {
  const { HitlStatus, Replay } = JSON.parse(read('openapi.json')).components.schemas
  const inTable = rows.flatMap(([, api = '']) => unquoted(api))
  t.strictSame([...new Set(inTable)].sort(), [...HitlStatus.enum, ...Replay.enum].map(String).sort())
  // These change no state: one of several approvals, more time, and events about agents, budgets and credentials.
  const others: readonly string[] = [
    ...['approval', 'extended', 'quarantined', 'toolChanged', 'budgetWarned', 'budgetExceeded'],
    'credentialNeeded',
  ]
  const events = rows.flatMap(([, , , event = '']) => unquoted(event))
  t.strictSame(events.sort(), hitlEvents.filter(event => !others.includes(event)).sort())
})

t.test('the words for the log and the metrics are written', async t => {
  const lines = rows.flatMap(([, , , , , line = '']) => unquoted(line))
  const written = read('src/pipeline/held/replay-log.ts') + read('src/base/refusal-kinds.ts')
  t.strictSame(
    lines.filter(line => line !== 'suspended' && !new RegExp(`\\b${line}\\b`).test(written)),
    [],
  )
  t.ok(requests.cells.has('suspended'))
})
