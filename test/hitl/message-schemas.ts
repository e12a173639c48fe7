/** Messages are what the schemas and limits of the services allow, whatever agents, rules and people are called. */
import t from 'tap'
import type { HitlEvent } from '../../src/hitl/events.ts'
import { type Hook, messageOf, messageOfMore } from '../../src/hitl/messages/message.ts'
import { endMessage, linkForm, requestMessage, verdictForm } from '../../src/hitl/slack/request.ts'
import type { HitlBrief } from '../../src/storage/store.ts'
import { createClock } from '../fixtures/clock.ts'
import { hookOf } from '../fixtures/hooks.ts'
import { messageProblems } from '../fixtures/message-schemas.ts'

const options = { clock: createClock(), publicUrl: 'https://gateway.example' }
/** Each as long as it may be, of characters that are longest in some way: of bytes, of escapes, of markup. */
const names = [
  'desk',
  'ほ'.repeat(300),
  '😀'.repeat(300),
  '<&>`"\\'.repeat(60),
  '\u202e\u0000'.repeat(60),
  '@here *b* [l](x)',
]
const requestOf = (name: string) => ({
  ...{ id: crypto.randomUUID(), method: 'POST', url: `https://pay.example/${encodeURIComponent(name)}?q=1` },
  ...{ agentId: crypto.randomUUID(), agentName: name, ownerId: name, rule: name, policyName: name, ruleReason: name },
  ...{ reason: 'rule', title: name, digest: 'd'.repeat(64), expiresAt: '2026-11-24T12:00:00.000Z' },
})
const eventsOf = (name: string): readonly HitlEvent[] => [
  { id: 'e1', type: 'pending', at: 0, hitlId: 'h1', data: requestOf(name) },
  { id: 'e2', type: 'denied', at: 0, hitlId: 'h1', data: { agentId: 'a', by: 'r', byName: name } },
  { id: 'e3', type: 'quarantined', at: 0, hitlId: null, data: { agentId: 'a', agentName: name, cause: name } },
  { id: 'e4', type: 'released', at: 0, hitlId: 'h1', data: { agentId: 'a' } },
]
const hookFor = (Format: Hook['Format']) =>
  hookOf({
    Url: 'https://service.example/topic',
    Format,
    ...((Format === 'ntfy' || Format === 'pagerDuty') && { Key: 'k' }),
  })

for (const format of ['slack', 'teams', 'discord', 'ntfy', 'pagerDuty'] as const) {
  t.test(`T36 each message for ${format} is as its schema and its limits say`, async t => {
    for (const name of names) {
      for (const event of eventsOf(name)) {
        for (const terms of [options, { clock: options.clock, publicUrl: undefined }]) {
          const { body } = messageOf(hookFor(format), event, terms)
          t.strictSame(messageProblems(format, JSON.parse(body)), [], `${event.type} ${name.slice(0, 6)}`)
          // Teams takes 28 KB. ntfy makes an attachment of what is longer than 4 KiB.
          t.ok(Buffer.byteLength(body) <= (format === 'ntfy' ? 4_096 : 28_000), `${Buffer.byteLength(body)} bytes`)
        }
      }
    }
    const more = messageOfMore(hookFor(format), eventsOf('desk')[0]!, 23, options)
    if (format !== 'pagerDuty') t.strictSame(messageProblems(format, JSON.parse(more.body)), [])
  })
}

t.test('T36 each message and form of the Slack app is as Block Kit says', async t => {
  const sight = {
    publicUrl: options.publicUrl,
    verdicts: 'rules',
    nameOf: (id: string) => id,
    isOpen: () => true,
  } as const
  for (const name of names) {
    const chat = Array.from({ length: 8 }, (_, at) => ({ field: `input.body.${name}${at}`, value: name }))
    const decision = { source: 'rule', title: name, operation: name, ruleReason: name, chat, findings: { counts: {} } }
    const item = {
      ...{ bodyEncoding: 'utf8', bodyBytes: 0, policyVersion: '1', approvalsNeeded: 1, idempotencyKey: null },
      ...{ repeatDigest: null, createdAt: 0, status: 'Pending', replay: null, attempt: 0, leaseUntil: null },
      ...{ approvedBy: [], decidedBy: null, decidedAt: null, comment: null, responseStatus: null },
      ...{ ...requestOf(name), expiresAt: 60_000, decision: JSON.stringify(decision) },
    } satisfies HitlBrief
    const subject = { id: item.id, digest: item.digest, channel: 'C0REVIEW', message: '1700000000.000001' } as const
    const ended = { reference: '1.1', hitlId: item.id, status: 'Denied', replay: null, decidedBy: name } as const
    const shown = JSON.stringify([['Agent', name || 'x']])
    const of = (kind: 'slack' | 'slackModal', content: object) =>
      t.strictSame(messageProblems(kind, content), [], name.slice(0, 6))
    of('slack', requestMessage(item, sight))
    of('slack', requestMessage(item, { ...sight, publicUrl: undefined }))
    of(
      'slack',
      endMessage({ ...ended, responseStatus: null, digest: '', shown }, () => name),
    )
    for (const verdict of ['approve', 'deny'] as const)
      of('slackModal', verdictForm(item, { ...subject, verdict }, sight))
    of('slackModal', linkForm('C0REVIEW'))
  }
})
