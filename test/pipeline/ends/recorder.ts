/** A flood of paths that an agent invents costs that agent its own new shapes, and nobody else anything. Threat T80. */
import t from 'tap'
import { parseTarget } from '../../../src/base/target.ts'
import { type AlikeCalls, ShapeRecorder } from '../../../src/pipeline/ends/recorder.ts'
import { createWorkTurns } from '../../../src/pipeline/work-turns.ts'
import type { AgentRecord } from '../../../src/storage/store.ts'
import { runs } from '../../fixtures/runs.ts'
import { openSqliteStore } from '../../fixtures/sqlite.ts'
import { testdir } from '../../fixtures/testdir.ts'
import { subscriptions } from '../../storage/contract/deliveries.ts'
import { agent, entry } from '../../storage/contract/samples.ts'

const shapesPerAgent = 200
const limits = { maxOfAgent: shapesPerAgent, max: 10_000, maxDays: 30 }
const outcome = { effect: 'Allow', policy: 'p', rule: null, status: 2, verdict: null, signal: null } as const

function createRecorder() {
  const recorder = new ShapeRecorder({ shapesPerAgent, maxBytes: 1_048_576 }, createWorkTurns(), error => {
    throw error
  })
  const note = (of: AgentRecord, path: string, at: number) => {
    const target = parseTarget(`https://api.example${path}`)
    if (typeof target === 'string') throw new TypeError(target)
    const alike: AlikeCalls = { ...outcome, url: target.url, method: 'GET' }
    if (recorder.count(of.id, alike, at)) return
    const call = { agent: of, target, method: 'GET', rawHeaders: [], hasBody: false, body: undefined, outcome }
    recorder.note({ ...call, isSampled: false }, alike, at)
  }
  return { recorder, note }
}

const [flooder, other] = [agent('flooder'), agent('other')]

t.test('a flood fills the places of its agent alone, in memory and in the store', async t => {
  const store = await openSqliteStore({ directory: testdir(t), subscriptions })
  t.teardown(() => store.close())
  for (const one of [flooder, other]) await store.agents.insert(one, 'hash', entry('agent.register'))
  const { recorder, note } = createRecorder()
  const flood = runs(100_000, 2_000)
  let most = 0
  let sent = 0
  for (let at = 0; at < flood; at += 100) {
    for (let n = at; n < at + 100; n++) note(flooder, `/made-up-${n}/x`, n)
    note(other, '/v1/items', at)
    note(other, `/v1/items/${at}`, at)
    sent += 2
    await recorder.read()
    // The gateway takes the counts every few seconds.
    if (at % 1_000 !== 900) continue
    const { counts, skipped } = recorder.take()
    most = Math.max(most, counts.filter(({ agentId }) => agentId === flooder.id).length)
    await store.shapes.add(counts, skipped, limits, at)
  }
  t.equal(most, shapesPerAgent, 'in memory')
  const [ofFlooder, ofOther] = await Promise.all([store.shapes.of(flooder.id), store.shapes.of(other.id)])
  t.equal(ofFlooder.shapes.length, shapesPerAgent / 4, 'new ones have a quarter of the places')
  t.type(ofFlooder.incompleteSince, 'number')
  t.equal(
    ofOther.shapes.reduce((sum, { count }) => sum + count, 0),
    sent,
  )
  t.strictSame([ofOther.shapes.length, ofOther.incompleteSince], [2, null])
})

t.test('what waits to be read is bounded for each agent', async t => {
  const { recorder, note } = createRecorder()
  for (let n = 0; n < 10_000; n++) note(flooder, `/made-up-${n}/x`, n)
  note(other, '/v1/items', 1)
  await recorder.read()
  const { counts, skipped } = recorder.take()
  t.strictSame([counts.length, skipped], [201, [flooder.id]])
  t.match(counts.at(-1), { agentId: other.id, count: 1 })
})

t.test('a long body of names is read in turns, between which others get theirs', async t => {
  const turns = createWorkTurns()
  const order: string[] = []
  const next: typeof turns.next = (agentId, begun) => {
    if (agentId !== '') order.push(agentId)
    return turns.next(agentId, begun)
  }
  const counted = { ...turns, next }
  const recorder = new ShapeRecorder({ shapesPerAgent, maxBytes: 1_048_576 }, counted, error => {
    throw error
  })
  const target = parseTarget('https://api.example/v1')
  if (typeof target === 'string') throw new TypeError(target)
  const note = (text: string, type: string) => {
    const rawHeaders = ['Content-Type', type]
    const call = { agent: flooder, target, method: 'POST', rawHeaders, hasBody: true, body: Buffer.from(text), outcome }
    recorder.note({ ...call, isSampled: false }, undefined, 1)
  }
  const names = Array.from({ length: 6_000 }, (_, at) => `n${at}`)
  const named = names.map(name => `"${name}":1`).join(',')
  const call = `"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{${named}}}`
  for (const [text, type, unfit] of [
    [`{${named}}`, 'application/json', 'more than is recorded'],
    [`{${call}}`, 'application/json', 'more than is recorded'],
    [`{"a":{${named}}}`, 'application/json', null],
    [names.map(name => `${name}=1`).join('&'), 'application/x-www-form-urlencoded', 'a body that is no object'],
  ] as const) {
    order.length = 0
    note(text, type)
    await recorder.read()
    t.ok(order.length > 2, `${order.length} turns`)
    const [{ shape = '' } = {}, ...more] = recorder.take().counts
    t.match(JSON.parse(shape), { unfit })
    t.strictSame(more, [])
  }
  const query = `{"query":"query Q { ${names.slice(0, 3_000).join(' ')} }","operationName":"Q"}`
  note(query, 'application/json')
  await recorder.read()
  t.match(recorder.take().counts, [{ shape: /more than is recorded/ }])
})

t.test('a request that cannot be read is reported, and keeps nothing behind it waiting', async t => {
  const problems: unknown[] = []
  const recorder = new ShapeRecorder({ shapesPerAgent, maxBytes: 1_048_576 }, createWorkTurns(), error => {
    problems.push(error)
  })
  const target = parseTarget('https://api.example/')
  if (typeof target === 'string') throw new TypeError(target)
  const call = { agent: other, target, method: 'GET', rawHeaders: [], hasBody: false, body: undefined, outcome }
  const broken = {
    ...call,
    target: {
      ...target,
      get path(): string {
        throw new Error('no path')
      },
    },
  }
  for (const one of [broken, call]) recorder.note({ ...one, isSampled: false }, undefined, 1)
  await recorder.read()
  t.strictSame(problems, [new Error('no path')])
  t.match(recorder.take().counts, [{ agentId: other.id, count: 1 }])
})
