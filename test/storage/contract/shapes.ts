/** Shapes of requests are kept within their bounds. Threat T80. */
import type { Test } from 'tap'
import type { ShapeCount, StoredSample } from '../../../src/storage/store.ts'
import { actions, agent, type Engine, entry } from './samples.ts'

const hour = 3_600_000
const limits = { maxOfAgent: 8, max: 1_000, maxDays: 30 }

const sample = (agentId: string, digest: string, id: string, over: Partial<StoredSample> = {}): StoredSample => ({
  ...{ id, agentId, digest, at: 10, sealed: new Uint8Array(100) },
  ...over,
})

const shape = (agentId: string, digest: string, over: Partial<ShapeCount> = {}): ShapeCount => ({
  ...{ agentId, digest, shape: `{"path":"${digest}"}`, outcome: '{}', values: [], fields: {}, count: 1 },
  ...{ firstAt: hour, lastAt: hour, days: [0] },
  ...over,
})

export function shapes(t: Test, engine: Engine): void {
  t.test('counts of a shape add up, with their days, times and at most eight values of a place', async t => {
    const store = await engine(t)
    await store.agents.insert(agent('a1'), 'hash', entry('agent.register'))
    const fields = (...texts: readonly string[]) => ({ fields: { 'input.body.a': { texts } } })
    const times = { days: [1, 3], firstAt: 5_000, lastAt: 6_000 }
    const first = shape('a1', 'x', { count: 2, values: [['1', '2'], []], ...fields('x'), ...times })
    const many = Array.from({ length: 9 }, (_, n) => `${n + 2}`)
    const second = shape('a1', 'x', {
      ...{ count: 5, values: [many, ['k']], ...fields('y') },
      ...{ days: [2, 3], firstAt: 1_000, lastAt: 5_500 },
    })
    t.strictSame(await store.shapes.add([first], [], limits, 1), [])
    t.strictSame(await store.shapes.add([second, shape('a1', 'y'), shape('gone', 'x')], [], limits, 1), [])
    const { shapes, incompleteSince } = await store.shapes.of('a1')
    t.equal(incompleteSince, null)
    t.strictSame(
      shapes.map(({ digest }) => digest),
      ['x', 'y'],
    )
    const values = [['1', '2', '3', '4', '5', '6', '7', '8'], ['k']]
    t.strictSame(shapes[0], { ...first, count: 7, values, ...fields('x', 'y'), days: [1, 2, 3], firstAt: 1_000 })
    await store.shapes.add([{ ...first, fields: {} }], [], limits, 1)
    t.strictSame((await store.shapes.of('a1')).shapes[0]?.fields, {}, 'a field that had other values is dropped')
    t.strictSame(await store.shapes.of('gone'), { shapes: [], incompleteSince: null })
  })

  t.test('new shapes make way for newer ones, those that came again do not, and the gap is noted', async t => {
    const store = await engine(t)
    for (const id of ['a1', 'a2']) await store.agents.insert(agent(id), 'hash', entry('agent.register'))
    const usual = [1, 2].map(n => shape('a1', `usual-${n}`, { count: 3, firstAt: 1, lastAt: hour }))
    const other = shape('a2', 'other')
    t.strictSame(await store.shapes.add([...usual, other], [], limits, 1), [])
    const flood = Array.from({ length: 600 }, (_, n) => shape('a1', `made-up-${n}`, { lastAt: 2 * hour + n }))
    t.strictSame(await store.shapes.add(flood, [], limits, 7), ['a1'])
    const left = async () => (await store.shapes.of('a1')).shapes.map(({ digest }) => digest)
    t.strictSame((await left()).sort(), ['made-up-598', 'made-up-599', 'usual-1', 'usual-2'])
    t.equal((await store.shapes.of('a1')).incompleteSince, 7)
    t.strictSame(await store.shapes.of('a2'), { shapes: [other], incompleteSince: null })
    t.strictSame(await store.shapes.add([shape('a1', 'next')], ['a2'], { ...limits, max: 1 }, 9), ['a2', 'a1'])
    t.equal((await left()).includes('next'), false, 'there are too many of all agents')
    t.equal((await store.shapes.of('a1')).incompleteSince, 7, 'since the first gap')
    t.equal((await store.shapes.of('a2')).incompleteSince, 9)
  })

  t.test('samples are kept as far as shape, agent and bytes allow, and go with what they are of', async t => {
    const store = await engine(t)
    for (const id of ['a1', 'a2', 'a3']) await store.agents.insert(agent(id), 'hash', entry('agent.register'))
    const limits = { maxOfAgent: 4, maxOfShape: 2, maxBytes: 1_000 }
    const keep = (...all: readonly StoredSample[]) => store.shapes.keepSamples(all, limits)
    const left = async (id: string) => (await store.shapes.samples(id)).map(one => one.id)
    const first = ['1', '2', '3'].map(id => sample('a1', 'x', id))
    t.strictSame(await keep(...first, sample('gone', 'x', '4')), [], 'a third of a shape is no loss')
    t.strictSame(await left('a1'), ['1', '2'])
    const bytes = Uint8Array.from([1, 2, 3])
    t.strictSame(await keep(sample('a1', 'y', '5', { at: 5, sealed: bytes }), sample('a1', 'x', '6')), [])
    t.strictSame(await keep(...['7', '8'].map(id => sample('a1', 'z', id))), ['a1'], 'the agent has four')
    t.strictSame(await left('a1'), ['5', '1', '2', '7'])
    t.match((await store.shapes.samples('a1'))[0], { digest: 'y', at: 5 })
    t.strictSame(new Uint8Array((await store.shapes.samples('a1'))[0]!.sealed), bytes)
    const long = sample('a2', 'x', '9', { sealed: new Uint8Array(800) })
    t.strictSame(await keep(long, sample('a2', 'x', '10')), ['a2'], 'too many bytes of all agents')
    t.strictSame(await left('a2'), ['10'])
    await keep(sample('a3', 'x', '11'))
    await store.shapes.prune(0, 10, 10)
    t.strictSame([await left('a1'), await left('a3')], [['1', '2', '7'], ['11']])
    await store.shapes.clear('a1', entry('agent.clearShapes'))
    await store.agents.remove('a3', entry('agent.remove'))
    t.strictSame([await left('a1'), await left('a2'), await left('a3')], [[], ['10'], []])
  })

  t.test(
    'shapes go when they do not come again, with an entry when they are cleared, and with their agent',
    async t => {
      const store = await engine(t)
      for (const id of ['a1', 'a2']) await store.agents.insert(agent(id), 'hash', entry('agent.register'))
      const counts = ['a1', 'a2'].flatMap(id => [shape(id, 'old', { lastAt: 10 }), shape(id, 'new', { lastAt: 20 })])
      await store.shapes.add(counts, ['a1', 'a2'], limits, 15)
      const left = async (id: string) => {
        const { shapes, incompleteSince } = await store.shapes.of(id)
        return [...shapes.map(({ digest }) => digest), incompleteSince]
      }
      await store.shapes.prune(20, 20, 10)
      t.strictSame(await left('a1'), ['new', null])
      await store.shapes.add([], ['a1', 'a2'], limits, 30)
      await store.shapes.clear('a1', entry('agent.clearShapes'))
      t.strictSame(await left('a1'), [null])
      t.strictSame(await left('a2'), ['new', 30])
      t.match(await actions(store), ['agent.register', 'agent.register', 'agent.clearShapes'])
      await store.agents.remove('a2', entry('agent.remove'))
      t.strictSame(await left('a2'), [null])
    },
  )
}
