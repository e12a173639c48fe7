/** What is posted and edited in a channel of Slack, by what the store says and what Slack answers. */
import t from 'tap'
import { type ChannelParts, slackChannel } from '../../../src/hitl/slack/channel.ts'
import type { StaleMessage } from '../../../src/storage/messages.ts'
import type { HitlBrief } from '../../../src/storage/store.ts'

const decision = { source: 'rule', title: null, operation: null, ruleReason: null, chat: [], findings: { counts: {} } }
const item: HitlBrief = {
  ...{ id: 'h1', agentId: 'agent-1', ownerId: 'team-a', method: 'POST', url: 'https://a.example/refunds' },
  ...{ bodyEncoding: 'utf8', bodyBytes: 0, reason: 'rule', policyName: 'p', policyVersion: '1', rule: 'r' },
  ...{ approvalsNeeded: 1, digest: 'd', idempotencyKey: null, repeatDigest: null, createdAt: 0 },
  ...{ expiresAt: 60_000, status: 'Pending', replay: null, attempt: 0, leaseUntil: null, approvedBy: [] },
  ...{ decidedBy: null, decidedAt: null, comment: null, responseStatus: null, decision: JSON.stringify(decision) },
}
const denied: StaleMessage = {
  ...{ reference: '1.1', hitlId: 'h1', status: 'Denied', replay: null, decidedBy: null, responseStatus: null },
  ...{ shown: '[]', digest: 'd' },
}
const pending: StaleMessage = { ...denied, status: 'Pending', replay: 'failed' }
const { signal } = new AbortController()
const event = (type: 'pending' | 'denied') => ({ id: 'e1', type, at: 0, hitlId: 'h1', data: {} }) as never // All that is read.

interface Given {
  readonly error?: string
  readonly isPassing?: boolean
  readonly found?: HitlBrief | undefined
  readonly stale?: readonly StaleMessage[]
  readonly keepFails?: boolean
  readonly isForgetful?: boolean
}

function channel({ error, isPassing = false, found, stale = [], keepFails = false, isForgetful = false }: Given) {
  const calls: string[] = []
  const kept: string[] = []
  const noted: (string | null)[] = []
  const reports: string[] = []
  const messages = {
    async keep({ reference }: { readonly reference: string }) {
      if (keepFails) throw new Error('the disk is full')
      kept.push(reference)
    },
    stale: async () => stale,
    async note(_: object, state: string | null) {
      noted.push(state)
    },
  }
  const parts: ChannelParts = {
    settings: { Id: 'C1', Rules: [], Owners: [] } as never, // What a channel reads.
    async call(method, args) {
      calls.push(`${method} ${args['channel']} ${args['ts'] ?? ''}`.trim())
      const refused = error === undefined ? undefined : { failure: error, isPassing }
      return { refused, error, body: { ts: '9.9' } }
    },
    sight: { publicUrl: 'https://gateway.example', verdicts: 'rules', nameOf: () => undefined, isOpen: () => true },
    requests: isForgetful ? undefined : { find: async () => found, messages },
    report: what => reports.push(what),
  }
  return { receiver: slackChannel(parts), calls, kept, noted, reports }
}

t.test('a request that waits is posted, and the message noted', async t => {
  const { receiver, calls, kept } = channel({ found: item })
  t.equal(await receiver.send(event('pending'), signal), undefined)
  t.strictSame([calls, kept], [['chat.postMessage C1'], ['9.9']])
})

t.test('what was decided meanwhile, or is not known, is not posted', async t => {
  for (const found of [undefined, { ...item, status: 'Denied' as const }]) {
    const { receiver, calls } = channel({ found })
    t.equal(await receiver.send(event('pending'), signal), undefined)
    t.strictSame(calls, [])
  }
})

t.test(
  'a post that Slack refuses is told and not noted; one that cannot be noted is reported and not sent again',
  async t => {
    const refused = channel({ found: item, error: 'ratelimited', isPassing: true })
    t.match(await refused.receiver.send(event('pending'), signal), { failure: 'ratelimited' })
    t.strictSame(refused.kept, [])
    const unnoted = channel({ found: item, keepFails: true })
    t.equal(await unnoted.receiver.send(event('pending'), signal), undefined)
    t.strictSame(unnoted.reports, ['a message of Slack could not be noted'])
  },
)

t.test('the end of a request edits its message, which is then forgotten', async t => {
  const { receiver, calls, noted } = channel({ stale: [denied] })
  t.equal(await receiver.send(event('denied'), signal), undefined)
  t.strictSame([calls, noted], [['chat.update C1 1.1'], [null]])
})

t.test('a message of a request that waits again is edited and remembered', async t => {
  const { receiver, calls, noted } = channel({ stale: [pending], found: item })
  await receiver.catchUp?.(signal)
  t.strictSame([calls, noted], [['chat.update C1 1.1'], ['Pending failed']])
  const over = channel({ stale: [pending] })
  await over.receiver.catchUp?.(signal)
  t.strictSame([over.calls, over.noted], [[], []], 'one whose time is over is left to its event')
})

t.test('an edit that may pass later is kept; a message that is gone is forgotten; another refusal is told', async t => {
  const later = channel({ stale: [denied, denied], error: 'ratelimited', isPassing: true })
  t.match(await later.receiver.catchUp?.(signal), { isPassing: true })
  t.strictSame([later.calls.length, later.noted], [1, []])
  const gone = channel({ stale: [{ ...denied, status: 'Approved' }], error: 'message_not_found' })
  t.equal(await gone.receiver.catchUp?.(signal), undefined)
  t.strictSame(gone.noted, [null])
  const wrong = channel({ stale: [{ ...denied, status: 'Approved' }], error: 'invalid_blocks' })
  t.match(await wrong.receiver.catchUp?.(signal), { failure: 'invalid_blocks' })
  t.strictSame(wrong.noted, ['Approved '])
})

t.test('without a store nothing is edited', async t => {
  const { receiver, calls } = channel({ isForgetful: true, stale: [denied] })
  t.equal(await receiver.sendMore(event('pending'), 23, signal), undefined)
  t.strictSame(calls.splice(0), ['chat.postMessage C1'])
  t.equal(await receiver.catchUp?.(signal), undefined)
  t.strictSame(calls, [])
})
