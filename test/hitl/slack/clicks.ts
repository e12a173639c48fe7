/** Clicks of Slack: who may give which verdict, and what everybody else is told. Threats T79, T81 and T82. */
import { Readable } from 'node:stream'
import t from 'tap'
import { refuse } from '../../../src/base/refusals.ts'
import type { Person } from '../../../src/hitl/model.ts'
import { type ClickParts, SlackClicks } from '../../../src/hitl/slack/clicks.ts'
import type { HitlBrief } from '../../../src/storage/store.ts'
import { createClock } from '../../fixtures/clock.ts'
import { channel, member, pressed, submitted, team } from '../../fixtures/slack.ts'

const digest = 'd'.repeat(64)
const decision = { source: 'rule', title: null, operation: null, ruleReason: null, chat: [], findings: { counts: {} } }
const item = {
  ...{ id: 'h1', agentId: 'bot', ownerId: 'team-a', method: 'POST', url: 'https://a.example/refunds', digest },
  ...{ bodyEncoding: 'utf8', bodyBytes: 0, reason: 'rule', policyName: 'p', policyVersion: '1', rule: 'r' },
  ...{ approvalsNeeded: 1, idempotencyKey: null, repeatDigest: null, createdAt: 0, expiresAt: 60_000 },
  ...{ status: 'Pending', replay: null, attempt: 0, leaseUntil: null, approvedBy: [], decidedBy: null },
  ...{ decidedAt: null, comment: null, responseStatus: null, decision: JSON.stringify(decision) },
} satisfies HitlBrief

/** Clicks of a gateway at which Ada is linked and may decide. */
function bench(more: Partial<ClickParts> = {}) {
  const called: { readonly method: string; readonly args: Readonly<Record<string, unknown>> }[] = []
  const verdicts: object[] = []
  const kept: object[] = []
  const reports: string[] = []
  const answers = new Map<string, object>()
  const clock = createClock()
  const clicks = new SlackClicks({
    ...{ settings: { Team: team, Channels: [{ Id: channel }] } as unknown as ClickParts['settings'], clock },
    async call(method, args) {
      called.push({ method, args })
      const given = answers.get(method) ?? (method === 'users.info' ? member(String(args['user'])) : { ok: true })
      const isOk = 'ok' in given && given.ok === true
      return { refused: isOk ? undefined : { failure: method, isPassing: false }, error: undefined, body: { ...given } }
    },
    sight: { publicUrl: undefined, verdicts: 'rules', nameOf: id => id, isOpen: () => true },
    queue: {
      approve: async (id, verdict) => {
        verdicts.push({ id, ...verdict })
        return { kind: 'answered', body: Readable.from([]) } as never
      },
      deny: async (id, verdict) => {
        verdicts.push({ id, ...verdict })
        return {} as never
      },
    },
    identities: { holder: async ({ user, team: of }) => (user === 'U0ADA' && of === team ? 'ada' : undefined) },
    links: { open: async () => ({ code: '', expiresAt: 0 }), redeem: async (text, user) => `${user} typed ${text}` },
    reviewerOf: id => (id === 'ada' ? ({ id: 'ada' } as Person) : undefined),
    takeCall: () => 0,
    find: async id => (id === 'h1' ? item : undefined),
    messages: { keep: async (record: object) => void kept.push(record) } as unknown as ClickParts['messages'],
    report: what => void reports.push(what),
    ...more,
  })
  const take = async (payload: unknown) => {
    const isTaken = clicks.take(payload)
    await clicks.idle()
    return isTaken
  }
  /** What the clicker was told last. */
  const told = () => called.findLast(({ method }) => method === 'chat.postEphemeral')?.args['text']
  const form = (text = '', over: object = {}, user = 'U0ADA') => {
    const subject = { id: 'h1', digest, verdict: 'approve', channel, message: '1.1', ...over }
    return take(submitted(user, { callback_id: 'verdict', private_metadata: JSON.stringify(subject) }, 'comment', text))
  }
  const press = (action: object, user = 'U0ADA', ts = '1.1') => take(pressed(user, { ts }, action))
  const methods = () => called.map(({ method }) => method)
  return { clicks, called, verdicts, kept, reports, answers, clock, take, told, form, press, methods }
}

const approve = { action_id: 'approve', value: `h1 ${digest}` }

t.test('a form gives one verdict of the person, for the digest that was shown, with where it came from', async t => {
  const { form, verdicts, methods } = bench()
  await form()
  await form('looks right', { verdict: 'deny' })
  const origin = { via: 'slack', user: 'U0ADA', channel, message: '1.1' }
  t.match(verdicts, [
    { id: 'h1', reviewer: { id: 'ada' }, comment: null, digests: [digest], origin },
    { id: 'h1', comment: 'looks right', origin },
  ])
  t.notOk(methods().includes('chat.postEphemeral'), 'nothing is said of what the message shows')
})

t.test('a press opens a form, decides nothing, and makes the message known', async t => {
  const { press, verdicts, kept, methods } = bench()
  await press(approve)
  t.strictSame([verdicts, methods()], [[], ['users.info', 'views.open']])
  t.match(kept, [{ channel, reference: '1.1', hitlId: 'h1', state: 'Pending ' }])
  await press(approve, 'U0ADA', '')
  await press({ ...approve, value: 'gone x' })
  t.equal(kept.length, 1, 'a message without a name, or of no request, is not kept')
})

t.test('T79 nobody else is heard, and everybody else is told why alone', async t => {
  const cases: readonly (readonly [RegExp, Partial<ClickParts>, object?])[] = [
    [/not linked to a reviewer/, { identities: { holder: async () => undefined } }],
    [/may not decide requests/, { reviewerOf: () => undefined }],
    [/Too many calls/, { takeCall: () => 1_000 }],
    [/Too many calls/, { takeCall: async () => 1_000 }],
    [/This request is over/, { find: async () => undefined }],
    [/decided already: Denied/, { find: async () => ({ ...item, status: 'Denied' }) }],
    [/another request than the message shows/, { find: async () => ({ ...item, digest: 'e'.repeat(64) }) }],
    [/in the console alone/, { find: async () => ({ ...item, approvalsNeeded: 2 }) }],
    [/Guests and members of other workspaces/, {}, member('U0ADA', { is_restricted: true })],
    [/Guests and members of other workspaces/, {}, member('U0ADA', { is_ultra_restricted: true })],
    [/Guests and members of other workspaces/, {}, member('U0ADA', { is_stranger: true })],
    [/Guests and members of other workspaces/, {}, member('U0ADA', { deleted: true })],
    [/Guests and members of other workspaces/, {}, member('U0ADA', { is_bot: true })],
    [/Guests and members of other workspaces/, {}, member('U0ADA', { team_id: 'T0OTHER' })],
    [/Guests and members of other workspaces/, {}, member('U0EVE')],
    [/does not say who you are/, {}, { ok: false }],
    [/does not say who you are/, {}, { ok: true }],
  ]
  for (const [text, parts, info] of cases) {
    for (const way of ['form', 'press'] as const) {
      const { form, press, verdicts, told, answers, methods } = bench(parts)
      if (info !== undefined) answers.set('users.info', info)
      await (way === 'form' ? form() : press(approve))
      t.match(told(), text)
      t.strictSame([verdicts, methods().includes('views.open')], [[], false], `${way} ${text}`)
    }
  }
})

t.test('T79 only one who is not linked is offered to link the account', async t => {
  const other = bench()
  await other.press(approve, 'U0EVE')
  t.match(JSON.stringify(other.called.at(-1)?.args['blocks']), '"action_id":"link"')
  const ada = bench({ takeCall: () => 1 })
  await ada.press(approve)
  t.notMatch(JSON.stringify(ada.called.at(-1)?.args['blocks']), '"action_id":"link"')
})

t.test('a refusal of the queue is told, and a failure is reported', async t => {
  const { form, told } = bench({
    queue: { approve: async () => refuse('wrong_state', 'It was decided.'), deny: async () => refuse('not_found') },
  })
  await form()
  t.equal(told(), 'It was decided.')
  const broken = bench({ find: async () => Promise.reject(new Error('the store is gone')) })
  await broken.form()
  t.match([broken.reports, broken.verdicts], [['a click in Slack could not be handled'], []])
})

t.test('the form for a code is opened, and its code is redeemed for the account that typed it', async t => {
  const { press, take, told, answers, called } = bench()
  await press({ action_id: 'link' })
  const { args } = called.find(({ method }) => method === 'views.open')!
  await take(submitted('U0EVE', args['view'] as never, 'code', 'AAAAA-AAAAA'))
  t.equal(told(), 'U0EVE typed AAAAA-AAAAA')
  answers.set('views.open', { ok: false })
  await press({ action_id: 'link' })
  t.match(told(), /did not open the form/)
  await press(approve)
  t.match(told(), /did not open the form/)
})

t.test('T81 payloads of other teams and channels, and those that say nothing, are not answered', async t => {
  const { take, form, called, press } = bench()
  const payload = pressed('U0ADA', { ts: '1.1' }, approve)
  const odd = [undefined, 5, [], {}, { type: 'view_submission' }, { ...payload, team: { id: 'T0OTHER' } }]
  const others = [
    { ...payload, channel: { id: 'C0OTHER' } },
    { ...payload, user: {} },
    { ...payload, actions: 'x' },
  ]
  for (const one of [...odd, ...others, { ...payload, actions: [] }]) t.equal(await take(one), true)
  await form('', { channel: 'C0OTHER' })
  await form('', { verdict: 'resend' })
  await press({ action_id: 'open', value: `h1 ${digest}` })
  t.strictSame(called, [])
})

t.test('T81 an account has 30 clicks in a minute, and 50 clicks are handled at a time', async t => {
  const { press, methods, clock } = bench()
  const opened = () => methods().filter(method => method === 'views.open').length
  for (let count = 0; count < 40; count++) await press(approve)
  t.equal(opened(), 30)
  clock.advance(60_000)
  await press(approve)
  t.equal(opened(), 31)
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const slow = bench({ identities: { holder: () => promise } })
  const taken = Array.from({ length: 51 }, (_, n) => slow.clicks.take(pressed(`U${n}`, { ts: '1.1' }, approve)))
  t.strictSame([taken.indexOf(false), taken.length], [50, 51])
  resolve(undefined)
  await slow.clicks.idle()
  t.equal(slow.clicks.take(pressed('U0ADA', { ts: '1.1' }, approve)), true)
  await slow.clicks.idle()
})
