/** What Slack shows: plain text within its limits, whatever an agent writes. */
import t from 'tap'
import {
  endMessage,
  linkForm,
  noticeOfRequest,
  type RequestSight,
  requestMessage,
  shownOf,
  verdictForm,
  verdictsOn,
} from '../../../src/hitl/slack/request.ts'
import { detectors } from '../../../src/policy/detectors/detectors.ts'
import type { StaleMessage } from '../../../src/storage/messages.ts'
import type { HitlBrief } from '../../../src/storage/store.ts'

const sight: RequestSight = {
  ...{ publicUrl: 'https://gateway.example', verdicts: 'rules', nameOf: id => `name of ${id}`, isOpen: () => true },
}
const decision = { source: 'rule', title: null, operation: null, ruleReason: null, chat: [], findings: { counts: {} } }

const itemOf = (more: object = {}, decided: object = {}): HitlBrief => ({
  ...{ id: 'h1', agentId: 'agent-1', ownerId: 'team-a', method: 'POST', url: 'https://a.example/refunds' },
  ...{ bodyEncoding: 'utf8', bodyBytes: 0, reason: 'rule', policyName: 'p', policyVersion: '1', rule: 'r' },
  ...{ approvalsNeeded: 1, digest: 'd'.repeat(64), idempotencyKey: null, repeatDigest: null, createdAt: 0 },
  ...{ expiresAt: 60_000, status: 'Pending', replay: null, attempt: 0, leaseUntil: null, approvedBy: [] },
  ...{ decidedBy: null, decidedAt: null, comment: null, responseStatus: null },
  decision: JSON.stringify({ ...decision, ...decided }),
  ...more,
})

const hostile =
  '<!channel> <@U1> *b* https://evil.example <https://evil.example|here> `x`\n> q \u202e\u0000 &amp; '.repeat(30)
const everywhere = itemOf(
  {
    method: hostile,
    ownerId: hostile,
    rule: hostile,
    policyName: hostile,
    url: `https://a.example/${'x'.repeat(5_000)}`,
  },
  {
    ...{ title: hostile, operation: hostile, ruleReason: hostile },
    chat: Array.from({ length: 8 }, (_, n) => ({ field: `${hostile}${n}`, value: hostile })),
  },
)

/** All objects in a value. */
function objects(value: unknown): readonly Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null) return []
  const own = Array.isArray(value) ? [] : [value as Record<string, unknown>]
  return [...own, ...Object.values(value).flatMap(objects)]
}

t.test('T36 hostile texts are plain text within the limits of Slack', async t => {
  const subject = { id: 'h1', digest: 'd'.repeat(64), verdict: 'deny', channel: 'C1', message: '1.1' } as const
  const form = verdictForm(everywhere, subject, sight)
  const stale = {
    reference: '1.1',
    hitlId: 'h1',
    status: 'Denied',
    replay: null,
    decidedBy: 'r',
    responseStatus: null,
  } as const
  const shown = shownOf(noticeOfRequest(everywhere, sight))
  const end = endMessage({ ...stale, shown, digest: '' }, () => hostile)
  for (const content of [requestMessage(everywhere, sight), form, end, linkForm('C1')]) {
    const all = objects(content)
    for (const one of all) {
      if (one['type'] === 'plain_text') t.ok(String(one['text']).length <= 200 && one['emoji'] === false)
      if (Array.isArray(one['fields'])) t.ok(one['fields'].length <= 10)
    }
    t.notOk(
      all.some(({ type }) => type === 'mrkdwn'),
      'nothing is markup',
    )
    t.notMatch(JSON.stringify(content), /\u202e|\\u0000/)
    t.ok((content.blocks as readonly object[]).length <= 50)
  }
  for (const { text } of [requestMessage(everywhere, sight), end]) t.notMatch(text, /[<>]|&(?!amp;|lt;|gt;)/)
  t.ok(form.title.text.length <= 24 && form.private_metadata.length <= 3_000)
})

t.test('T35 a query is in no message, and no verdict is in one for a request that has ended', async t => {
  const item = itemOf({ url: 'https://a.example/x?token=q0secret' })
  t.notMatch(JSON.stringify(requestMessage(item, sight)), 'q0secret')
  t.notMatch(JSON.stringify(requestMessage(itemOf({ status: 'Denied' }), sight)), /"approve"|"deny"/)
})

t.test(
  'T82 a verdict is offered where identity and digest are bound, an approval only where nothing speaks against it',
  async t => {
    const offered = (more: object = {}, decided: object = {}, other: Partial<RequestSight> = {}) =>
      verdictsOn(itemOf(more, decided), { ...sight, ...other })
    const pii = detectors.find(({ group }) => group === 'pii')?.id ?? ''
    t.strictSame(offered(), ['approve', 'deny'])
    t.strictSame(offered({}, { findings: { counts: { [pii]: 1 } } }), ['approve', 'deny'])
    const denials: readonly (readonly [string, readonly string[]])[] = [
      ['the setting', offered({}, {}, { verdicts: 'deny' })],
      ['the rule as it is now', offered({}, {}, { isOpen: () => false })],
      ['the rule as it was', offered({}, { chat: null })],
      ['risk', offered({}, { source: 'risk' })],
      ['several approvals', offered({ approvalsNeeded: 2 })],
      ['a secret', offered({}, { findings: { counts: { 'github-token': 1 } } })],
      ['a secret by its name', offered({}, { findings: { counts: { 'secret-name': 1 } } })],
      ['a body that was not searched', offered({}, { findings: undefined })],
      ['an outcome that is unknown', offered({ replay: 'unknown' })],
    ]
    for (const [why, verdicts] of denials) t.strictSame(verdicts, ['deny'], why)
    t.strictSame(offered({}, {}, { verdicts: 'none' }), [])
    t.strictSame(offered({ status: 'Denied' }), [])
  },
)

t.test('the message of a request that has ended says what became of it, and by whom', async t => {
  const ended = (more: Partial<StaleMessage>) => {
    const stale = { reference: '1.1', hitlId: 'h1', status: 'Approved', replay: null, decidedBy: 'r' } as const
    return endMessage({ ...stale, responseStatus: 201, shown: '[]', digest: '', ...more }, id => names.get(id)).text
  }
  const names = new Map([['r', 'Rita']])
  t.match(ended({ status: 'Denied' }), 'Denied by Rita')
  t.match(ended({ status: 'Denied', decidedBy: 'gone' }), 'Denied by gone')
  t.match(ended({ status: 'Denied', decidedBy: null }), 'Denied by a reviewer')
  t.match(ended({ status: 'Withdrawn' }), 'Withdrawn by its agent')
  t.match(ended({ status: 'Expired' }), 'Expired without a verdict')
  t.match(ended({ replay: 'completed' }), 'Approved by Rita: answered with 201')
  t.match(ended({ replay: 'failed' }), 'Approved by Rita: sent, without an answer')
  t.match(ended({ replay: 'unknown' }), 'Approved by Rita: perhaps sent')
  t.match(ended({}), 'Approved by Rita: sending')
})
