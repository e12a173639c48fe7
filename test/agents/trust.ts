import fc from 'fast-check'
import t from 'tap'
import { isGainSpent, judge, startTrust, type TrustCause, type TrustState, trustNow } from '../../src/agents/agent.ts'

const hour = 3_600_000
const day = 24 * hour
const rules = { below: 0.2, denials: 10, windowMs: 300_000 }
const fresh = startTrust({ value: 0.5, at: 0 })

/** Applies one cause again and again, `gap` milliseconds apart; how many it took to quarantine, up to `most`. */
function untilQuarantine(cause: TrustCause, gap: number, most: number) {
  let standing = fresh
  for (let count = 1; count <= most; count++) {
    const judgement = judge(standing, cause, count * gap, rules)
    if (judgement.quarantine !== undefined) return { count, by: judgement.quarantine }
    standing = judgement.trust
  }
  return undefined
}

t.test('trust drifts to the middle from both sides with a half-life of a week', async t => {
  t.equal(trustNow({ value: 0.9, at: 0 }, 7 * day), 0.7)
  t.equal(trustNow({ value: 0.1, at: 0 }, 7 * day), 0.3)
  t.equal(trustNow({ value: 0.5, at: 0 }, 400 * day), 0.5)
  t.equal(trustNow({ value: 0.9, at: 100 }, 50), 0.9, 'a clock that goes back changes nothing')
  t.equal(Math.round(trustNow({ value: 0.25, at: 0 }, 7 * day) * 100) / 100, 0.38)
})

t.test('each cause has its weight, and gains shrink towards 1', async t => {
  const delta = (cause: TrustCause, value = 0.5) => {
    const judgement = judge(startTrust({ value, at: 0 }), cause, 0, rules)
    t.ok(Math.abs(judgement.before - value) < 1e-9)
    return Math.round(judgement.delta * 1e6) / 1e6
  }
  t.equal(delta('success'), 0.001)
  t.equal(delta('humanApproval'), 0.02)
  t.equal(delta('humanApproval', 0.9), 0.004)
  t.equal(delta('policyDenial'), -0.02)
  t.equal(delta('humanDenial'), -0.05)
  t.equal(delta('secretDetected'), -0.12)
  t.equal(delta('badCredential'), -0.02)
  t.equal(delta('humanDenial', 0.02), -0.02)
})

t.test('successes give no more than 0.05 a day', async t => {
  let standing = fresh
  for (let i = 0; i < 1_000; i++) standing = judge(standing, 'success', i, rules).trust
  t.equal(Math.round(standing.value * 1e4) / 1e4, 0.55)
  t.equal(isGainSpent(standing, 1_000), true)
  t.equal(isGainSpent(standing, day), false)
  t.ok(judge(standing, 'success', day, rules).delta > 0)
})

t.test('14 good days lead to about 0.86', async t => {
  let standing: TrustState = fresh
  for (let d = 0; d < 14; d++) {
    for (let i = 0; i < 100; i++) standing = judge(standing, 'success', d * day + i * 60_000, rules).trust
  }
  t.ok(Math.abs(standing.value - 0.86) < 0.03, `${standing.value}`)
})

t.test('low trust by one kind of fault now and then does not quarantine', async t => {
  const apart = rules.windowMs
  t.equal(untilQuarantine('policyDenial', apart, 100), undefined)
  t.equal(untilQuarantine('humanDenial', apart, 100), undefined)
  t.equal(untilQuarantine('secretDetected', apart, 100), undefined)
})

t.test('low trust quarantines with ten losses in the window, or with two kinds within a day', async t => {
  t.strictSame(untilQuarantine('secretDetected', 1_000, 20), { count: 10, by: 'trust' })
  let standing = fresh
  for (let i = 0; i < 7; i++) standing = judge(standing, 'humanDenial', i * rules.windowMs, rules).trust
  t.ok(standing.value < rules.below)
  t.equal(judge(standing, 'policyDenial', hour, rules).quarantine, 'trust')
  t.equal(judge(standing, 'badCredential', hour, rules).quarantine, undefined, 'which anyone can send')
  const later = startTrust({ value: 0.1, at: 0 })
  const first = judge(later, 'humanDenial', 0, rules).trust
  t.equal(judge(first, 'policyDenial', 2 * day, rules).quarantine, undefined, 'the other kind is too long ago')
})

t.test('10 denials within five minutes quarantine, 10 over a longer time do not', async t => {
  t.strictSame(untilQuarantine('policyDenial', 1_000, 20), { count: 10, by: 'denials' })
  t.strictSame(untilQuarantine('policyDenial', 299_000 / 9, 10), { count: 10, by: 'denials' })
  t.equal(untilQuarantine('policyDenial', 301_000 / 9, 10), undefined)
})

t.test('both rules can be switched off', async t => {
  const off = { below: 0, denials: 0, windowMs: 300_000 }
  let standing = fresh
  for (let i = 0; i < 100; i++) {
    const judgement = judge(standing, 'humanDenial', i, off)
    t.equal(judgement.quarantine, undefined)
    standing = judgement.trust
  }
  t.equal(standing.value, 0)
  t.strictSame(standing.denials, [])
})

t.test('wrong secrets, which anyone can send, neither quarantine an agent nor push it below probation', async t => {
  t.equal(untilQuarantine('badCredential', 1_000, 200), undefined)
  let standing = fresh
  for (let i = 0; i < 200; i++) standing = judge(standing, 'badCredential', 0, rules).trust
  t.equal(standing.value, 0.35)
  const low = judge(startTrust({ value: 0.25, at: 0 }), 'badCredential', 0, rules)
  t.equal(low.delta, 0)
  const strict = judge(fresh, 'badCredential', 0, { ...rules, below: 0.6 })
  t.equal(strict.quarantine, undefined)
})

t.test('whatever happens, trust stays in [0, 1] and no more denials are remembered than the rule counts', async t => {
  const causes: TrustCause[] = ['success', 'humanApproval', 'policyDenial', 'humanDenial', 'secretDetected']
  const event = fc.tuple(fc.constantFrom<TrustCause>(...causes, 'badCredential'), fc.nat(day))
  fc.assert(
    fc.property(fc.array(event, { maxLength: 200 }), events => {
      let standing = fresh
      let now = 0
      for (const [cause, gap] of events) {
        now += gap
        standing = judge(standing, cause, now, rules).trust
        if (standing.value < 0 || standing.value > 1 || standing.denials.length > 10 || standing.losses.length > 10) {
          return false
        }
      }
      return true
    }),
  )
  t.pass('holds')
})
