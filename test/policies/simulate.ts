/** Simulating agrees with the decisions that follow. */
import t from 'tap'
import { makeDraft } from '../../src/policies/draft.ts'
import { simulate } from '../../src/policies/simulate.ts'
import { type KeptShape, keptOf } from '../../src/policy/propose/kept.ts'
import { sampleOf } from '../../src/policy/propose/sample.ts'
import { naiveVerdict } from '../fixtures/naive-policy.ts'
import { createRandom, randomHead, randomPolicy, withBodies } from '../fixtures/random-policy.ts'
import { described, policyOf } from '../fixtures/rulebook.ts'
import { runs } from '../fixtures/runs.ts'

t.test('what is known of a shape is decided as each of its requests is', async t => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = createRandom(seed)
  const count = runs(10_000, 60)
  const wrong: unknown[] = []
  const tally = { same: 0, changed: 0, unknown: 0, answered: 0 }
  for (let run = 0; run < count && wrong.length === 0; run++) {
    const [before, after] = [randomPolicy(random, 4), randomPolicy(random, 4)]
    const [own, tried] = [policyOf(before), policyOf(after)]
    for (const request of withBodies(randomHead(random), 2, random)) {
      const isWhole = random() < 0.8
      const kept = keptOf(request, isWhole || request.head.contentLength === 0)
      if (kept === undefined) continue
      const effectOf = (policy: typeof own) =>
        naiveVerdict({ own: policy, guardrail: undefined, isRisky: false }, request).effect
      const [old, now] = [effectOf(own), effectOf(tried)]
      const outcome = { effect: old, policy: own.name, rule: null, status: 2, verdict: null, signal: null }
      const texts = { shape: JSON.stringify(kept.shape), outcome: JSON.stringify(outcome) }
      const times = { count: 1, firstAt: 0, lastAt: 1, days: [0] }
      const { id, name, ownerId, tags, policyName } = request.head.agent
      const one = { agentId: id, digest: 'd', ...texts, values: kept.values, fields: kept.fields, ...times }
      const agent = { id, name, ownerId, tags, policyName }
      const ofShape = simulate([{ agent, shapes: [one], samples: [], before }], after, {})
      const sampled = isWhole ? sampleOf(request) : undefined
      const samples = sampled === undefined ? [] : [{ digest: 'd', at: request.head.now, request: sampled }]
      const found = random() < 0.5 ? ofShape : simulate([{ agent, shapes: [one], samples, before }], after, {})
      const [change] = found.changes
      tally.answered += ofShape.unknown - found.unknown
      tally.same += found.same
      tally.unknown += found.unknown
      tally.changed += found.changes.length
      const isRight =
        found.unknown === 1 || (change === undefined ? old === now : change.before === old && change.after === now)
      if (!isRight) wrong.push({ seed, before, after, request, old, now, found, shape: kept.shape })
    }
  }
  t.strictSame(wrong, [])
  for (const [what, times] of Object.entries(tally)) t.ok(times > count / 200, `${what}: ${times}`)
})

const agent = { id: 'a1' }
const policy = (name: string, ...rules: object[]) => ({ name, default: 'Allow', rules })
const onBody = { name: 'r', effect: 'Deny', conditions: [{ field: 'input.body.x', operator: 'eq', value: '1' }] }

function simulated(shape: Partial<KeptShape>, before: object | undefined, after: object, values: string[][] = []) {
  const head = { method: 'GET', origin: 'https://a.example', path: ['x'], facts: [], names: [], unfit: 'a body' }
  const outcome = { effect: 'Deny', policy: 'former', rule: 'r', status: 4, verdict: null, signal: null }
  const texts = { shape: JSON.stringify({ ...head, ...shape }), outcome: JSON.stringify(outcome) }
  const one = { agentId: 'a1', digest: 'd', ...texts, values, fields: {}, count: 3, firstAt: 0, lastAt: 1, days: [0] }
  const { same, unknown, changes } = simulate([{ agent, shapes: [one, one], samples: [], before }], after, {})
  return [same, unknown, ...changes.map(change => `${change.before} ${change.after} ${change.count}`)]
}

t.test('where the former policy is not certain, what was recorded of it counts', async t => {
  const body = { method: 'POST' }
  t.strictSame(simulated(body, policy('former', onBody), policy('p')), [0, 0, 'Deny Allow 6'])
  t.strictSame(simulated(body, policy('other', onBody), policy('p')), [0, 6], 'another policy has decided it')
  t.strictSame(simulated(body, undefined, policy('p')), [0, 6], 'none applies now')
  t.strictSame(simulated(body, policy('other', onBody), policy('p', onBody)), [6, 0], 'both read the same')
  t.strictSame(simulated(body, policy('other'), policy('p', onBody)), [0, 6])
})

t.test('the fields that the decision rests on are told, of the most frequent first', async t => {
  const head = { method: 'POST', origin: 'https://a.example', path: ['x'], facts: [], names: [], unfit: 'a body' }
  const outcome = { effect: 'Deny', policy: 'former', rule: 'r', status: 4, verdict: null, signal: null }
  const counted = (count: number, shape: object) => ({
    ...{ agentId: 'a1', digest: 'd', shape: JSON.stringify({ ...head, ...shape }), outcome: JSON.stringify(outcome) },
    ...{ values: [], fields: {}, count, firstAt: 0, lastAt: 1, days: [0] },
  })
  const either = { any: [{ field: 'input.method', operator: 'eq', value: 'PUT' }, ...onBody.conditions] }
  const shapes = [counted(1, {}), ...Array.from({ length: 11 }, (_, at) => counted(at + 2, { path: [`x${at}`] }))]
  const tried = policy('p', { ...onBody, conditions: [either] })
  const found = simulate([{ agent, shapes, samples: [], before: policy('other') }], tried, {})
  t.equal(found.unknown, 78)
  t.strictSame(
    found.unknownExamples.map(({ count }) => count),
    [12, 11, 10, 9, 8, 7, 6, 5, 4, 3],
  )
  t.strictSame(found.unknownExamples[0], {
    ...{ method: 'POST', url: 'https://a.example/x10', agentId: 'a1', shapeId: 'd' },
    ...{ count: 12, fields: ['input.body.x'] },
  })
})

t.test('of a shape without a path, an id or a request nothing is known', async t => {
  const after = policy('p')
  t.strictSame(simulated({ path: [] }, after, after), [0, 6])
  t.strictSame(simulated({ path: ['x', ['int', 0]] }, after, after, [[]]), [0, 6])
  t.strictSame(simulated({ path: ['x', ['int', 0]] }, after, after, [['1', '2']]), [6, 0])
  t.strictSame(simulated({ origin: 'https://a.example:x' }, after, after), [0, 6])
  t.strictSame(
    simulated({ path: ['x', ['int', 0]] }, policy('other'), policy('p', { ...onBody, conditions: [] }), [['1']]),
    [...[0, 0], 'Allow Deny 6'],
  )
})

t.test('texts of fields that no rule names make no further examples: an agent chooses how many there are', t => {
  const body = { a: 'x', b: 'x', c: 'x', d: 'x' }
  const request = described({ request: { method: 'POST', url: 'https://a.example/x', body }, agent })
  const { shape } = keptOf(request, true)!
  const outcome = { effect: 'Allow', policy: 'p', rule: null, status: 2, verdict: null, signal: null }
  const texts = { shape: JSON.stringify(shape), outcome: JSON.stringify(outcome) }
  /** How often the agent is read: for each example. */
  const readsOf = (names: readonly string[]): readonly number[] => {
    const fields = Object.fromEntries(names.map(name => [`input.body.${name}`, { texts: ['x', 'y'] }]))
    const one = { agentId: 'a1', digest: 'd', ...texts, values: [], fields, count: 9, firstAt: 0, lastAt: 1, days: [0] }
    let reads = 0
    const watched = {
      id: 'a1',
      get ownerId() {
        reads += 1
        return 'o'
      },
    }
    const before = policy('p')
    const subject = { agent: watched, shapes: [one], samples: [], before }
    simulate(
      [subject],
      policy('p', { ...onBody, conditions: [{ ...onBody.conditions[0], field: 'input.body.a' }] }),
      {},
    )
    const simulated = reads
    const terms = { name: 'n', effect: 'Allow', priority: 0, open: [], alone: false } as const
    makeDraft({ ...terms, request: { url: 'https://a.example/y' } }, subject, {})
    return [simulated, reads - simulated]
  }
  t.strictSame(readsOf(['a', 'b', 'c', 'd']), readsOf(['a']))
  t.ok(readsOf(['a'])[0]! > readsOf([])[0]!, 'those of one that a rule names do')
  t.end()
})
