import t from 'tap'
import { type CompiledPolicy, compilePolicySync } from '../../src/policy/compile.ts'
import { decideBody, decideHead } from '../../src/policy/decide.ts'
import type { DescribedRequest } from '../../src/policy/describe.ts'
import { IndexBuilder } from '../../src/policy/rule-index.ts'
import { naiveDecide, sortRules } from '../fixtures/naive-policy.ts'
import { createRandom, randomHead, randomPolicy, withBodies } from '../fixtures/random-policy.ts'
import { policyOf, rulebookOfCompiled } from '../fixtures/rulebook.ts'

const policies = 60_000
const headsPerPolicy = 2
const bodiesPerHead = 2

const seed = Math.floor(Math.random() * 2 ** 32)

/** The same policy with every rule in the index, by path too, and lists run as programs when `programs` is set. */
function indexed(compiled: CompiledPolicy, programs: boolean): CompiledPolicy {
  const builder = new IndexBuilder({ fewRules: 0, manyRules: programs ? 0 : Number.POSITIVE_INFINITY })
  for (const [place, rule] of compiled.rules.entries()) builder.add(rule, place)
  return { ...compiled, index: builder.finish(compiled.rules) }
}

function outcome(policy: CompiledPolicy, { head, body }: DescribedRequest): string {
  const rulebook = rulebookOfCompiled(policy)
  const first = decideHead(rulebook, head)
  if (!('need' in first))
    return first.source === 'regardless-of-body' ? first.decision : `${first.decision} ${first.rule}`
  const decided = decideBody(rulebook, head, first, body)
  return decided.source === 'error' ? decided.reason : `${decided.decision} ${decided.rule}`
}

/** What the head alone says, of the same request with a body of unknown length. */
function headOutcome(policy: CompiledPolicy, { head }: DescribedRequest): string | undefined {
  const first = decideHead(rulebookOfCompiled(policy), { ...head, contentLength: -1 })
  return 'need' in first ? undefined : first.decision
}

t.test(
  `${policies} random policies: the head decision is the full decision, by index, program and plain interpreter`,
  async t => {
    const random = createRandom(seed)
    const differences: unknown[] = []
    let early = 0
    let regardless = 0
    for (let count = 0; count < policies && differences.length === 0; count++) {
      const document = randomPolicy(random, 7)
      const policy = policyOf(document)
      const compiled = compilePolicySync(policy)
      const variants = [compiled, indexed(compiled, false), indexed(compiled, true)]
      const rules = sortRules(policy)
      for (let index = 0; index < headsPerPolicy; index++) {
        const requests = withBodies(randomHead(random), bodiesPerHead, random)
        const atHead = headOutcome(compiled, requests[0]!)
        if (atHead !== undefined) early++
        for (const request of requests) {
          const naive = naiveDecide(policy, rules, request)
          const outcomes = variants.map(variant => outcome(variant, request))
          const wanted = `${naive.effect} ${naive.rule}`
          if (outcomes[0] === naive.effect) regardless++
          const same = outcomes.every(found => found === outcomes[0] && (found === wanted || found === naive.effect))
          if (same && (atHead === undefined || atHead === naive.effect)) continue
          differences.push({ seed, document, request: request.head, wanted, outcomes, atHead })
        }
      }
    }
    t.same(differences, [])
    t.ok(early > policies, `decided at the head without a length: ${early} of ${policies * headsPerPolicy} heads`)
    t.ok(regardless > 0, `decided regardless of the body: ${regardless}`)
  },
)
