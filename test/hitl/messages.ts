/** What each service gets: the facts of a request as plain text, and nothing that its agent could make markup, a mention or a link of. */
import t from 'tap'
import type { HitlEvent } from '../../src/hitl/events.ts'
import { type Hook, messageOf, messageOfMore } from '../../src/hitl/messages/message.ts'
import { createClock } from '../fixtures/clock.ts'
import { hookOf } from '../fixtures/hooks.ts'

const publicUrl = 'https://gateway.example'
const link = `${publicUrl}/console/#/requests/h1`
const clock = createClock()
const key = 'key-of-the-service'

const pending = (more: object = {}): HitlEvent => ({
  ...{ id: 'e1', type: 'pending', at: 0, hitlId: 'h1' },
  data: {
    ...{ id: 'h1', method: 'POST', url: 'https://pay.example/refunds?customer=anna&token=t0psecret' },
    ...{ agentId: 'agent-1', agentName: 'desk', ownerId: 'team-a', rule: 'refunds', policyName: 'pay' },
    ...{ ruleReason: 'Refunds are checked', reason: 'rule', title: 'Refund 20 to Anna' },
    ...{ digest: '0123456789abcdef0123', expiresAt: '2026-11-24T12:00:00.000Z', ...more },
  },
})
const ended = (type: HitlEvent['type']): HitlEvent => ({
  ...{ id: 'e2', type, at: 0, hitlId: 'h1' },
  data: { agentId: 'agent-1', by: 'reviewer-1', byName: 'Rita' },
})

const chats = ['slack', 'teams', 'discord', 'ntfy'] as const
const hookFor = (Format: Hook['Format']) =>
  hookOf({
    ...{ Url: 'https://service.example/topic', Format },
    ...((Format === 'ntfy' || Format === 'pagerDuty') && { Key: key }),
  })
const message = (format: Hook['Format'], event: HitlEvent) => messageOf(hookFor(format), event, { clock, publicUrl })
const content = (format: Hook['Format'], event: HitlEvent) => JSON.parse(message(format, event).body)

/** Every text of a message, decoded. */
function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(texts) : []
}

for (const format of [...chats, 'pagerDuty'] as const) {
  t.test(`${format} gets the facts of a request with a link, and neither its query nor its secrets`, async t => {
    const all = texts(content(format, pending())).join('\n')
    for (const fact of ['POST https://pay.example/refunds', 'desk (agent-1)', 'team-a', 'refunds (pay)']) {
      t.match(all, fact)
    }
    for (const fact of ['Refund 20 to Anna', 'Refunds are checked', '0123456789ab', link]) t.match(all, fact)
    t.notMatch(all, /anna&|t0psecret|0123456789abc/)
  })

  t.test(`T35 ${format} gets no secret that a detector knows, wherever it stands`, async t => {
    const token = `ghp_${'a1B2'.repeat(9)}`
    const url = `https://pay.example/hooks/${token}/refunds`
    const key = `-----BEGIN PRIVATE ${''}KEY-----\n${'MIIEvQIBADANBgkq'.repeat(4)}\n-----END PRIVATE ${''}KEY-----`
    const all = texts(content(format, pending({ url, agentName: token, ruleReason: key })))
    t.match(all.join('\n'), 'https://pay.example/hooks/[redacted: github-token]/refunds')
    t.notMatch(all.join('\n'), /ghp_a1|MIIEvQ/)
  })

  t.test(`${format} gets the outcome and who decided`, async t => {
    const all = texts(content(format, ended('denied'))).join('\n')
    t.match(all, 'Request h1: denied')
    t.match(all, 'Rita (reviewer-1)')
  })

  t.test(`T36 ${format} gets each value in at most 200 characters, whatever an agent wrote`, async t => {
    const hostile = `${'<&`'.repeat(300)}\u202e`
    for (const value of texts(content(format, pending({ title: hostile, ruleReason: hostile, agentName: hostile })))) {
      t.ok(value.length <= 200 || value.includes('\n'), value)
      t.ok(value.split('\n').every(line => line.length <= 200))
      t.notMatch(value, '\u202e')
    }
    const about = { agentId: 'a1', agentName: `\u202e${hostile}`, byName: '\u202e', by: 'r1', cause: '\u202e' }
    for (const hitlId of ['h1', null]) {
      const all = texts(content(format, { id: 'e', type: 'quarantined', at: 0, hitlId, data: about }))
      t.notMatch(all.join(), '\u202e')
    }
  })
}

t.test('T36 Slack gets values as plain text without emoji, links or mentions', async t => {
  const hostile = '<!channel> <https://evil.example|pay> *b* :smile: &lt;'
  const { text, blocks, unfurl_links, unfurl_media } = content('slack', pending({ title: hostile }))
  t.strictSame([unfurl_links, unfurl_media], [false, false])
  const markup = blocks.flatMap(({ text }: { text?: { type: string; text: string } }) =>
    text?.type === 'mrkdwn' ? [text.text] : [],
  )
  t.strictSame(markup, [`<${link}|Open in the console>`], 'the only markup is our own')
  const plain = blocks.flatMap(
    ({ fields }: { fields?: { type: string; text: string; emoji: boolean }[] }) => fields ?? [],
  )
  t.ok(plain.every(({ type, emoji }: { type: string; emoji: boolean }) => type === 'plain_text' && !emoji))
  t.ok(plain.some(({ text }: { text: string }) => text === `What: ${hostile}`))
  const { text: fallback } = content('slack', pending({ method: '<!channel>' }))
  t.notMatch(`${text}${fallback}`, '<')
})

t.test('T36 Teams gets an Adaptive Card whose texts are runs, which are not markdown', async t => {
  const { type, attachments } = content('teams', pending({ title: '[pay](https://evil.example) **b**' }))
  t.equal(type, 'message')
  const [{ contentType, content: card }] = attachments
  t.equal(contentType, 'application/vnd.microsoft.card.adaptive')
  t.match(card, { type: 'AdaptiveCard', version: '1.4', actions: [{ type: 'Action.OpenUrl', url: link }] })
  for (const { type, inlines } of card.body) {
    t.equal(type, 'RichTextBlock')
    for (const inline of inlines) t.match(inline, { type: 'TextRun', text: String })
  }
})

t.test('T36 Discord gets a block of code that no value can end, and mentions nobody', async t => {
  const body = content('discord', pending({ title: '``` @everyone <@1> https://evil.example' }))
  t.strictSame([body.allowed_mentions, body.flags], [{ parse: [] }, 4])
  const [before, inside, after] = body.content.split('```')
  t.equal(before, '')
  t.match(inside, 'What: \\u{60}\\u{60}\\u{60} @everyone')
  t.equal(after, `\n[Open in the console](<${link}>)`)
})

t.test('ntfy gets JSON at the root of its server, with the topic and its token', async t => {
  const { url, headers, body } = message('ntfy', pending())
  t.equal(url, 'https://service.example/')
  t.match(JSON.parse(body), { topic: 'topic', click: link })
  t.equal(headers[headers.indexOf('Authorization') + 1], `Bearer ${key}`)
  t.notOk(message('slack', pending()).headers.includes('Authorization'))
})

t.test('PagerDuty opens an incident for a request, and resolves the same one with its end', async t => {
  const opened = content('pagerDuty', pending())
  t.match(opened, {
    routing_key: key,
    event_action: 'trigger',
    payload: { source: 'agent-gateway', severity: 'warning' },
  })
  for (const type of ['approved', 'denied', 'withdrawn', 'expired'] as const) {
    const { event_action, dedup_key } = content('pagerDuty', ended(type))
    t.strictSame([event_action, dedup_key], ['resolve', opened.dedup_key])
  }
  t.equal(content('pagerDuty', ended('released')).event_action, 'trigger')
})

t.test('several requests are one message with their number, and a link to the list', async t => {
  for (const format of chats) {
    const all = texts(JSON.parse(messageOfMore(hookFor(format), pending(), 23, { clock, publicUrl }).body)).join('\n')
    t.match(all, '23 more requests wait for review')
    t.match(all, `${publicUrl}/console/#/requests`)
    t.notMatch(all, 'pay.example')
  }
})
