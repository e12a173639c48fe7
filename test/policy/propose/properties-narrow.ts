/** Rules from traffic cannot widen a policy. Poisoned learning: whatever an agent did while it was watched. Threat T90. */
import t from 'tap'
import { compilePolicySync } from '../../../src/policy/evaluation/compile.ts'
import { stricter } from '../../../src/policy/language/model.ts'
import { narrow } from '../../../src/policy/propose/narrow.ts'
import { shapeOf } from '../../../src/policy/propose/shape.ts'
import { type RecordedRequest, whyIneligible } from '../../../src/policy/propose/template.ts'
import type { DescribedRequest, RequestDescription } from '../../../src/policy/request/describe.ts'
import { naiveVerdict } from '../../fixtures/naive-policy.ts'
import { createRandom, pick, randomHead, randomPolicy, withBodies } from '../../fixtures/random-policy.ts'
import { policyOf } from '../../fixtures/rulebook.ts'
import { runs } from '../../fixtures/runs.ts'

type Random = () => number

const dayMs = 86_400_000

/** A request of the same shape that other conditions hold for. */
function withOtherValues(given: RequestDescription, random: Random): RequestDescription {
  const { request } = given
  const other = randomHead(random)
  const headers = { ...other.request.headers, 'content-type': request.headers?.['content-type'] ?? '' }
  const url = request.url.replace(/\?scope=\w+$/, pick(random, ['?scope=red', '?scope=10', '?scope=blue']))
  return { ...given, ...(other.agent && { agent: other.agent }), request: { ...request, url, headers } }
}

const isLike = ({ head: one }: DescribedRequest, { head: other }: DescribedRequest): boolean =>
  one.method === other.method &&
  one.origin === other.origin &&
  one.path.split('/').length === other.path.split('/').length

t.test('a narrowed policy is milder for no request, and goes on to allow what was read', async t => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = createRandom(seed)
  const count = runs(10_000, 150)
  const wrong: unknown[] = []
  const tally = { allowed: 0, held: 0, narrowed: 0 }
  for (let run = 0; run < count && wrong.length === 0; run++) {
    const document = { ...randomPolicy(random, 6), ...(random() < 0.4 ? { default: 'Allow' } : {}) }
    const own = policyOf(document)
    const heads = Array.from({ length: 4 }, () => randomHead(random))
    const sent = heads.flatMap(head => withBodies(head, 2, random))
    const requests = [...sent, ...heads.flatMap(head => withBodies(withOtherValues(head, random), 2, random))]
    const effectOf = (policy: typeof own, request: (typeof requests)[number], isRisky = false) =>
      naiveVerdict({ own: policy, guardrail: undefined, isRisky }, request).effect
    const recorded = sent.slice(0, 8).flatMap(request => {
      const shape = shapeOf(request)
      if ('unfit' in shape) return []
      const effect = effectOf(own, request)
      const verdict = effect === 'Hitl' ? pick(random, [null, 'approved', 'denied'] as const) : null
      const one = { agentId: request.head.agent.id, request, shape, effect, status: 200, verdict, signals: [] }
      return [0, 1, 1].map((day): RecordedRequest => ({ ...one, at: day * dayMs }))
    })
    const eligible = recorded.filter(one => whyIneligible(one) === undefined)
    const proposal = narrow(compilePolicySync(own), { recorded, eligible }, random() < 0.3)
    const narrowed = policyOf(proposal?.document)
    tally.narrowed += proposal?.made.size ?? 0
    for (const request of requests) {
      for (const isRisky of [false, true]) {
        const [before, after] = [effectOf(own, request, isRisky), effectOf(narrowed, request, isRisky)]
        if (stricter(before, after) !== after) wrong.push({ seed, document, request, before, after, isRisky })
        if (before !== 'Allow') continue
        if (after === 'Allow' && !eligible.some(one => isLike(one.request, request))) {
          wrong.push({ seed, document, request, unseen: true })
        }
        if (after === 'Allow') tally.allowed++
        else tally.held++
      }
    }
    // What a rule allows although it cannot be read is held from now on.
    const readsAll = [own, ...own.rules].some(({ onUnreadable }) => onUnreadable === 'match')
    if (readsAll || recorded.some(({ effect }) => effect !== 'Allow')) continue
    for (const { request } of eligible) {
      if (request.head.method === 'GET' && effectOf(narrowed, request) !== 'Allow') {
        wrong.push({ seed, document, request, narrowed: proposal?.document })
      }
    }
  }
  t.strictSame(wrong, [])
  for (const [what, times] of Object.entries(tally)) t.ok(times > count / 10, `${what}: ${times}`)
})
