import t from 'tap'
import { createSnapshot } from '../../src/agents/registry.ts'
import type { AgentRecord } from '../../src/storage/store.ts'
import { threadTimeOf } from '../fixtures/cpu-time.ts'

const agents: readonly AgentRecord[] = Array.from({ length: 10_000 }, (_, i) => ({
  id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
  name: `agent ${i}`,
  ownerId: 'o',
  status: 'Active',
  policyName: null,
  roles: ['agent'],
  externalSubject: `subject ${i}`,
  tags: {},
  trustValue: 0.5,
  trustAt: 0,
  createdAt: i,
  weakSecret: false,
  recording: null,
  keys: [],
}))

t.test('agents are in the order of registration, whatever the order of the store', async t => {
  t.strictSame(createSnapshot([...agents].reverse()).values(), agents)
})

t.test('a change keeps the place of an agent, a removal closes the gap', async t => {
  const snapshot = createSnapshot(agents.slice(0, 4))
  void snapshot.change(agents[1]!.id, { ...agents[1]!, name: 'renamed' })
  void snapshot.change(agents[2]!.id, undefined)
  void snapshot.change('unknown', undefined)
  t.strictSame(
    snapshot.values().map(agent => agent.name),
    ['agent 0', 'renamed', 'agent 3'],
  )
})

t.test('a subject leads to its agent until it is changed or the agent removed', async t => {
  const snapshot = createSnapshot(agents.slice(0, 2))
  t.equal(snapshot.bySubject('subject 1')?.id, agents[1]!.id)
  void snapshot.change(agents[1]!.id, { ...agents[1]!, externalSubject: 'other' })
  t.equal(snapshot.bySubject('subject 1'), undefined)
  t.equal(snapshot.bySubject('other')?.id, agents[1]!.id)
  void snapshot.change(agents[1]!.id, undefined)
  t.equal(snapshot.bySubject('other'), undefined)
})

t.test('loading everything again shows what differs, and notifies listeners of nothing else', async t => {
  const snapshot = createSnapshot(agents.slice(0, 4))
  const told: unknown[][] = []
  snapshot.subscribe((id, agent, before) => void told.push([id, agent?.name, before?.name]))
  const [first, second, third, fourth] = agents as [AgentRecord, AgentRecord, AgentRecord, AgentRecord]
  const moved = { ...second, externalSubject: 'subject 2' }
  const renamed = { ...third, name: 'renamed', externalSubject: null }
  await snapshot.load([first, moved, structuredClone(renamed), agents[4]!])
  t.strictSame(snapshot.values(), [first, moved, renamed, agents[4]])
  t.equal(snapshot.bySubject('subject 2')?.id, second.id)
  t.equal(snapshot.bySubject('subject 3'), undefined)
  t.strictSame(told.length, 4)
  t.strictSame(told[0], [fourth.id, undefined, 'agent 3'])
})

t.test('a change is in force when every listener says so', async t => {
  const snapshot = createSnapshot(agents.slice(0, 1))
  const released = Promise.withResolvers<void>()
  snapshot.subscribe(() => undefined)
  t.equal(snapshot.change('a', undefined), undefined, 'no promise without a reason')
  snapshot.subscribe(() => released.promise)
  let done = false
  const inForce = snapshot.change(agents[0]!.id, undefined)?.then(() => {
    done = true
  })
  await Promise.resolve()
  t.equal(snapshot.get(agents[0]!.id), undefined)
  t.equal(done, false)
  released.resolve()
  await inForce
  t.equal(done, true)
})

t.test('10,000 agents in order take less than 5 ms, also right after a change', async t => {
  const snapshot = createSnapshot(agents)
  let fastest = Infinity
  for (let i = 0; i < 20; i++) {
    const took = threadTimeOf(() => {
      void snapshot.change(agents[i]!.id, agents[i]!)
      snapshot.values()
    })
    fastest = Math.min(fastest, took)
  }
  t.ok(fastest < 5, `${fastest} ms`)
})
