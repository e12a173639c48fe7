import t from 'tap'
import { decideHead } from '../../../src/policy/evaluation/decide.ts'
import type { Decision } from '../../../src/policy/evaluation/decision.ts'
import { Zone } from '../../../src/policy/language/fields/zone.ts'
import type { RequestDescription } from '../../../src/policy/request/describe.ts'
import { Facts } from '../../../src/policy/request/facts.ts'
import { noRisk, RiskAssessment } from '../../../src/policy/risk/risk.ts'
import { defaultRisk, type RiskSettings, riskSignals } from '../../../src/policy/risk/risk-signals.ts'
import { decideBody } from '../../fixtures/decide.ts'
import { createRandom, pick } from '../../fixtures/random-policy.ts'
import { decision, described, headDecision, rulebookOf } from '../../fixtures/rulebook.ts'

interface Request extends Partial<RequestDescription['request']> {}

function given(request: Request, agent: RequestDescription['agent'] = {}): RequestDescription {
  return { request: { method: 'GET', url: 'https://api.example.com/x', ...request }, agent }
}

function assess(description: RequestDescription, settings: RiskSettings = defaultRisk) {
  const { head, body } = described(description)
  const risk = new RiskAssessment(settings)
  const known = new Facts(head, risk)
  const facts = head.contentLength === 0 ? known : known.withBody(body, risk)
  const { low } = risk.interval(facts)
  return { score: low, signals: risk.signals(facts).map(({ signal, points }) => `${signal} ${points}`) }
}

const key = 'AKIAIOSFODNN7EXAMPLE'

t.test('scores are those of the contract', async t => {
  const rows: [string, RequestDescription, number][] = [
    ['GET, known host', given({}), 0],
    ['DELETE, known host', given({ method: 'DELETE' }), 0.2],
    ['POST to a never-seen host', given({ method: 'POST' }, { hostSeen: false }), 0.25],
    ['POST with a key, good trust', given({ method: 'POST', body: key }, { trustScore: 0.9 }), 0.6],
    ['POST with a key to a never-seen host', given({ method: 'POST', body: key }, { hostSeen: false }), 0.85],
    [
      'DELETE of an export, low trust, denials',
      given({ method: 'DELETE', url: 'https://api.example.com/admin/export' }, { trustScore: 0.25, deniedLast10m: 3 }),
      0.8,
    ],
    ['GET the metadata address', given({ url: 'http://169.254.169.254/latest' }, { hostSeen: false }), 1],
  ]
  for (const [name, description, score] of rows) t.equal(assess(description).score, score, name)
})

t.test('each signal of the table gives its points', async t => {
  const rows: [RequestDescription, string][] = [
    [given({ method: 'POST' }), 'method-post 5'],
    [given({ method: 'PUT' }), 'method-put-patch 10'],
    [given({ method: 'DELETE' }), 'method-delete 20'],
    [given({ method: 'PROPFIND' }), 'method-other 15'],
    [given({ url: 'https://xn--mller-kva.example/' }), 'punycode 10'],
    [given({ url: 'http://api.example.com/' }), 'plain-http 10'],
    [given({ url: 'https://api.example.com:8443/' }), 'unusual-port 5'],
    [given({ url: 'https://192.0.2.9/' }), 'ip-literal-host 15'],
    [given({ url: 'https://[2001:db8::1]/' }), 'ip-literal-host 15'],
    [given({ url: 'https://metadata.google.internal/' }), 'metadata-address 60'],
    [given({ url: 'https://api.example.com/ADMIN/users' }), 'sensitive-path 15'],
    [given({ url: 'https://api.example.com/x%2f%61dmin;y' }), 'sensitive-path 15'],
    [given({}, { hostSeen: false }), 'new-host 20'],
    [given({}, { trustScore: 0 }), 'low-trust 30'],
    [given({}, { trustScore: 0.4 }), 'low-trust 6'],
    [given({}, { trustScore: 0.8 }), 'high-trust -10'],
    [given({}, { deniedLast10m: 9 }), 'recent-denials 20'],
    [given({}, { humanDeniedLast24h: 1 }), 'human-denied 10'],
    [given({}, { toolChangesLast24h: 1 }), 'tool-changed 30'],
    [given({}, { requestsLastMinute: 301 }), 'burst 15'],
    [given({}, { bytesToday: 1_001, medianBytesPerDay: 100 }), 'egress-volume 25'],
    [given({ body: 'x'.repeat(900) }, { usualBodyBytes: 100 }), 'body-far-above-usual 15'],
    [given({ body: 'x'.repeat(70_000) }), 'large-body 5'],
    [given({ body: 'x'.repeat(1_100_000) }), 'large-body 10'],
    [given({ body: key }), 'secret-in-body 60'],
    [given({ body: 'mail a.b@c.example' }), 'pii-in-body 25'],
    [given({ body: '{', headers: { 'content-type': 'application/json' } }), 'unreadable-body 10'],
  ]
  for (const [description, signal] of rows) t.ok(assess(description).signals.includes(signal), signal)
  // Those two need other settings: see below.
  const tried = new Set([...rows.map(([, signal]) => signal.split(' ')[0]), 'private-address', 'outside-hours'])
  t.strictSame([...tried].sort(), Object.keys(riskSignals).sort())
})

t.test('a call inside the machine or network is no risk by itself', async t => {
  for (const url of ['http://127.0.0.1:9000/', 'http://localhost:9000/', 'http://10.0.0.9/', 'http://[::1]:81/']) {
    t.strictSame(assess(given({ url })), { score: 0, signals: [] }, url)
  }
  const points = { ...defaultRisk.points, 'private-address': 40 }
  t.equal(assess(given({ url: 'http://10.0.0.9/' }), { ...defaultRisk, points }).score, 0.4)
})

t.test('credits never talk a signal away', async t => {
  t.equal(assess(given({ method: 'DELETE' }, { trustScore: 0.9 })).score, 0.2)
  t.equal(assess(given({ method: 'DELETE' }, { trustScore: 0.9, hostSeen: false })).score, 0.3)
})

t.test('a switched off signal gives nothing, and the body no more than 75 points', async t => {
  const points = { ...defaultRisk.points, 'method-delete': 0 }
  t.equal(assess(given({ method: 'DELETE' }), { ...defaultRisk, points }).score, 0)
  t.equal(assess(given({ body: `${key} a.b@c.example` })).score, 0.75)
})

t.test('working hours are in their zone, over midnight too', async t => {
  const hours = { window: { from: 7 * 60, to: 20 * 60 }, zone: new Zone('Europe/Berlin') }
  const settings = { ...defaultRisk, hours }
  t.strictSame(assess({ ...given({}), time: '2026-01-05T05:30:00Z' }, settings).signals, ['outside-hours 10'])
  t.strictSame(assess({ ...given({}), time: '2026-01-05T06:00:00Z' }, settings).signals, [])
})

t.test('an agent whose activity is not kept has no signals of it', async t => {
  const { head } = described(given({}))
  const risk = new RiskAssessment(defaultRisk)
  t.strictSame(risk.signals(new Facts({ ...head, activity: undefined }, risk)), [])
})

const open = { name: 'p', rules: [{ name: 'open', effect: 'Allow', conditions: [] }] }
const risky = { risk: defaultRisk }

t.test('a body that cannot lift the risk over the threshold is not held', async t => {
  t.match(headDecision(rulebookOf(open, risky), given({ method: 'POST', body: key })), {
    decision: 'Allow',
    phase: 'head',
  })
})

t.test('a body that can is held, and its secret sends it to review', async t => {
  const suspicious = given({ method: 'POST', body: key }, { hostSeen: false })
  const rulebook = rulebookOf(open, risky)
  t.match(headDecision(rulebook, suspicious), { need: 'body', pending: [], otherwise: 'open' })
  const found = decision(rulebook, suspicious)
  t.match(found, { decision: 'Hitl', source: 'risk', rule: 'open', phase: 'body' })
  t.equal(found.reason, 'risk 0.85 > 0.80: secret-in-body (aws-access-key) +60, new-host +20, method-post +5')
  t.match(decision(rulebook, given({ method: 'POST', body: 'x' }, { hostSeen: false })), {
    decision: 'Allow',
    phase: 'body',
  })
})

t.test('a head above the threshold is sent to review at once when it has no body, and else with its body', async t => {
  const metadata = given({ method: 'POST', url: 'http://169.254.169.254/' })
  t.match(headDecision(rulebookOf(open, risky), { ...metadata, request: { ...metadata.request, body: 'x' } }), {
    need: 'body',
  })
  const found = headDecision(rulebookOf(open, risky), metadata)
  t.match(found, { decision: 'Hitl', source: 'risk', phase: 'head' })
  t.match('reason' in found && found.reason, '1 more')
})

t.test('risk.score is an interval until the body is known', async t => {
  const rule = (operator: string, value: string) => ({
    name: 'p',
    default: 'Allow',
    rules: [{ name: 'r', effect: 'Deny', conditions: [{ field: 'risk.score', operator, value }] }],
  })
  const settings = { risk: { ...defaultRisk, threshold: 1 } }
  const at = (operator: string, value: string) => {
    const found = headDecision(rulebookOf(rule(operator, value), settings), given({ method: 'POST', body: 'x' }))
    return 'need' in found ? 'body' : found.decision
  }
  // The head gives 5 points, the body may add 75.
  const rows: [string, string, string][] = [
    ['gt', '0.04', 'Deny'],
    ['gt', '0.05', 'body'],
    ['gt', '0.8', 'Allow'],
    ['gte', '0.05', 'Deny'],
    ['gte', '0.81', 'Allow'],
    ['lt', '0.05', 'Allow'],
    ['lt', '0.81', 'Deny'],
    ['lte', '0.8', 'Deny'],
    ['lte', '0.5', 'body'],
    ['lte', '0.04', 'Allow'],
    ['between', '0,0.8', 'Deny'],
    ['between', '0.9,1', 'Allow'],
    ['between', '0.1,1', 'body'],
  ]
  for (const [operator, value, wanted] of rows) t.equal(at(operator, value), wanted, `${operator} ${value}`)
  t.match(decision(rulebookOf(rule('gt', '0.05'), settings), given({ method: 'POST', body: key })), {
    decision: 'Deny',
  })
  t.match(decision(rulebookOf(rule('gt', '0.05'), settings), given({ method: 'POST', body: 'x' })), {
    decision: 'Allow',
  })
})

/** A decision, and which parts of the body it asked. */
function asked(description: RequestDescription, document: object = open) {
  const { head, body } = described(description)
  const rulebook = rulebookOf(document, risky)
  const first = decideHead(rulebook, head)
  const decided = 'need' in first ? decideBody(rulebook, head, first, body) : first
  const { score, atLeast = false, signals = [] } = decided.risk as NonNullable<Decision['risk']>
  return `${decided.decision} ${decided.phase} ${score}${atLeast ? '+' : ''} ${signals.map(({ signal }) => signal).join(' ')}`
}

t.test('of a body only that is asked which can still change the outcome', async t => {
  const post = (body: unknown, agent: RequestDescription['agent'] = {}, url = 'https://api.example.com/x') =>
    given({ method: 'POST', url, body, headers: { 'content-type': 'application/json' } }, agent)
  const card = '"4111 1111 1111 1111"'
  const known = { method: 'POST', url: 'https://api.example.com/x' }
  const readsBody = {
    name: 'p',
    default: 'Allow',
    rules: [{ name: 'r', effect: 'Deny', conditions: [{ field: 'input.body.a', operator: 'eq', value: '1' }] }],
  }
  const burst = { requestsLastMinute: 301 }
  const worse = { ...burst, hostSeen: false, deniedLast10m: 2 }
  const rows: [string, RequestDescription, string, object?][] = [
    ['nothing the body says matters', given({ ...known, body: key }), 'Allow head 0.05+ '],
    ['no body, nothing is left open', given({ method: 'POST' }), 'Allow head 0.05 '],
    ['without a secret nothing matters', post(card, burst), 'Allow body 0.2+ burst method-post'],
    ['a secret alone is not enough', post(`"${key}"`, burst), 'Allow body 0.8 secret-in-body burst method-post'],
    [
      'a secret and personal data are',
      post(`"${key} a@b.example"`, burst),
      'Hitl body 0.95 secret-in-body pii-in-body burst method-post',
    ],
    [
      'personal data and malformed JSON are',
      post(`${card} x`, worse),
      'Hitl body 0.85 pii-in-body new-host burst recent-denials unreadable-body method-post',
    ],
    [
      'held for a rule: searched for secrets alone',
      post(`{"b":"${key}"}`),
      'Allow body 0.65+ secret-in-body method-post',
      readsBody,
    ],
    ['denied by a rule: likewise', post(`{"a":"1","b":${card}}`), 'Deny body 0.05+ method-post', readsBody],
  ]
  for (const [name, description, wanted, document] of rows) t.equal(asked(description, document), wanted, name)
})

t.test('which POST is not held, whatever it says: to a known host, over TLS, of up to 64 KB', async t => {
  const phase = (request: Request, agent: RequestDescription['agent'] = {}) => {
    const found = headDecision(rulebookOf(open, risky), given({ method: 'POST', body: 'x', ...request }, agent))
    return 'need' in found ? 'held' : 'streams'
  }
  t.equal(phase({}), 'streams')
  t.equal(phase({ body: 'x'.repeat(65_536) }), 'streams')
  t.equal(phase({ body: 'x'.repeat(65_537) }), 'held')
  t.equal(phase({ body: 'x'.repeat(70_000) }, { trustScore: 0.9 }), 'streams', 'good trust makes up for it')
  t.equal(phase({ method: 'PUT' }), 'held')
  t.equal(phase({ method: 'PUT' }, { trustScore: 0.9 }), 'streams')
  t.equal(phase({}, { hostSeen: false }), 'held')
  t.equal(phase({}, { requestsLastMinute: 301 }), 'held')
  t.equal(phase({ url: 'http://api.example.com/x' }), 'held')
})

t.test('a score that nothing asks for is not worked out', async t => {
  const allowAll = { name: 'p', default: 'Allow' }
  const reads = (threshold: number, scoresAllowed: boolean) => {
    const { head } = described(given({ method: 'GET' }))
    let count = 0
    const watched = Object.defineProperty({ ...head }, 'activity', {
      get() {
        count++
        return head.activity
      },
    })
    const rulebook = rulebookOf(allowAll, { risk: { ...defaultRisk, threshold }, scoresAllowed })
    const decision = decideHead(rulebook, watched)
    return { count, risk: 'need' in decision ? undefined : decision.risk }
  }
  t.strictSame(reads(1, false), { count: 0, risk: null }, 'no score is above 1, and no line is written')
  t.match(reads(1, true), { count: 1, risk: { score: Number } }, 'for the line of the log')
  t.match(reads(0.8, false), { count: 1, risk: null }, 'for the threshold')
})

t.test('asking as little as possible decides as asking all', async t => {
  const random = createRandom(20_261_122)
  const bodies = ['x', key, '4111 1111 1111 1111', `${key} a@b.example`, '{"a":', `{"a":"${key}`, 'a@b.example {']
  let less = 0
  for (let round = 0; round < 2_000; round++) {
    const agent = {
      hostSeen: random() < 0.5,
      trustScore: pick(random, [0, 0.4, 0.9]),
      requestsLastMinute: pick(random, [0, 301]),
      deniedLast10m: pick(random, [0, 1, 2, 3]),
    }
    const headers: Record<string, string> = random() < 0.5 ? { 'content-type': 'application/json' } : {}
    const settings = {
      ...defaultRisk,
      threshold: pick(random, [0, 0.2, 0.5, 0.8, 0.95]),
      points: {
        ...defaultRisk.points,
        'secret-in-body': pick(random, [60, 0, -20]),
        'pii-in-body': pick(random, [25, 0, 80, -30]),
        'unreadable-body': pick(random, [10, -5, 30]),
      },
    }
    const { head, body } = described(given({ method: 'POST', body: pick(random, bodies), headers }, agent))
    const whole = () => new Facts(head, noRisk).withBody(body, new RiskAssessment(settings))
    const [all, some] = [whole(), whole()]
    const { low: score } = all.risk.interval(all)
    const bounds = some.risk.against(settings.threshold, some)
    t.ok(bounds.low <= score && score <= bounds.high, JSON.stringify({ score, bounds, settings }))
    t.equal(bounds.low > settings.threshold, score > settings.threshold, JSON.stringify({ score, bounds, settings }))
    if (some.risk.known(some).low !== some.risk.known(some).high) less++
  }
  t.ok(less > 200, `${less} times not all was asked`)
})

t.test('the score with the body lies within the interval of the head', async t => {
  const random = createRandom(20_260_105)
  const urls = ['https://api.example.com/x', 'http://[2001:db8::1]:81/admin/export', 'https://xn--mller-kva.example/']
  const counts = { deniedLast10m: 9, humanDeniedLast24h: 1, requestsLastMinute: 999, bytesToday: 9_999 }
  for (let round = 0; round < 500; round++) {
    const agent = {
      ...(random() < 0.5 ? counts : {}),
      hostSeen: random() < 0.5,
      trustScore: pick(random, [0, 0.4, 0.9]),
    }
    const description = {
      method: 'POST',
      url: pick(random, urls),
      body: pick(random, ['x', key, '4111 1111 1111 1111']),
    }
    const { head, body } = described(given(description, agent))
    const facts = new Facts(head, new RiskAssessment(defaultRisk))
    const { low, high } = facts.risk.interval(facts)
    const whole = facts.withBody(body, new RiskAssessment(defaultRisk))
    const { low: score } = whole.risk.interval(whole)
    t.ok(low <= score && score <= high, JSON.stringify({ low, score, high, head }))
    const points = whole.risk.signals(whole).reduce((sum, signal) => sum + signal.points, 0)
    t.ok(score === 1 || score >= points / 100, 'signals explain the score')
  }
})
