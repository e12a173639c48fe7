/** Which messages a receiver gets, and when: by rule, by owner, after a while, and not one by one in a burst. */
import t from 'tap'
import { MessageSender, type SenderParts } from '../../src/hitl/message-sender.ts'
import type { Hook, WebhookMessage } from '../../src/hitl/messages/message.ts'
import { queuesOf, webhookReceiver } from '../../src/hitl/receiver.ts'
import type { EventNote } from '../../src/storage/events.ts'
import { createClock } from '../fixtures/clock.ts'
import { hookOf, receiversOf } from '../fixtures/hooks.ts'

type Found = Awaited<ReturnType<SenderParts['find']>>

/** A sender of a queue of this hook that has the lease, with the requests that it finds. */
function senderOf(hook: Hook, found: Map<string, Found> = new Map(), at = 0) {
  const clock = createClock()
  const rows: { readonly id: number; readonly event: string; readonly note: EventNote }[] = []
  const posted: WebhookMessage[] = []
  const queue = queuesOf(receiversOf(hook))[at]!
  const sender = new MessageSender({
    receiver: webhookReceiver(hook, {
      ...{ index: 0, clock },
      post: async message => {
        posted.push(message)
        return 200
      },
    }),
    ...{ queue, clock, stop: new AbortController().signal, delays: [] },
    store: {
      deliveries: {
        next: async (_: string, limit: number) => rows.slice(0, limit),
        remove: async (gone: readonly { readonly id: number }[]) => {
          for (const { id } of gone) {
            rows.splice(
              rows.findIndex(row => row.id === id),
              1,
            )
          }
        },
      } as unknown as SenderParts['store']['deliveries'],
    },
    find: async id => found.get(id),
    ownerOf: id => (id === 'agent-1' ? 'team-a' : undefined),
    describe: ({ data }) => data,
    report: (what, error) => t.fail(`${what}: ${error}`),
  })
  sender.lease = { steady: Number.POSITIVE_INFINITY, wall: Number.POSITIVE_INFINITY }
  let count = 0
  const leave = (type: EventNote['type'], hitlId: string | null, agentId = 'agent-1') => {
    count += 1
    rows.push({ id: count, event: `e${count}`, note: { type, at: clock.now(), hitlId, data: { agentId, id: hitlId } } })
  }
  const bodies = () => posted.map(({ body }) => JSON.parse(body))
  return { sender, leave, bodies, clock, rows, queue }
}

const waits = (rule: string | null): Found => ({ status: 'Pending', rule })
const Url = 'https://hook.example/key'

t.test('a webhook with rules gets the events of their requests alone', async t => {
  const found = new Map([
    ['h1', waits('refunds')],
    ['h2', waits('other')],
    ['h3', waits(null)],
  ])
  const { sender, leave, bodies, rows } = senderOf(hookOf({ Url, Rules: ['refunds'] }), found)
  for (const id of ['h1', 'h2', 'h3', 'gone']) leave('pending', id)
  leave('denied', 'h1')
  leave('quarantined', null)
  await sender.send()
  t.strictSame(
    bodies().map(({ type, hitlId }) => [type, hitlId]),
    [
      ['hitl.pending', 'h1'],
      ['hitl.denied', 'h1'],
      ['hitl.quarantined', null],
    ],
  )
  t.strictSame(rows, [])
})

t.test('a webhook with owners gets what their agents do alone', async t => {
  const { sender, leave, bodies } = senderOf(hookOf({ Url, Owners: ['team-a'] }))
  leave('pending', 'h1', 'agent-2')
  leave('pending', 'h2')
  leave('quarantined', null, 'agent-2')
  await sender.send()
  t.strictSame(
    bodies().map(({ hitlId }) => hitlId),
    ['h2'],
  )
})

t.test('with AfterMinutes a request is sent once it has waited so long, and not when it was decided', async t => {
  const hook = hookOf({ Url, AfterMinutes: 10, Events: ['pending', 'denied'] })
  t.strictSame(
    queuesOf(receiversOf(hook)).map(({ types, afterMs }) => ({ types, afterMs })),
    [
      { types: ['denied'], afterMs: 0 },
      { types: ['pending'], afterMs: 600_000 },
    ],
    'what ends a request has no delay',
  )
  const found = new Map([
    ['h1', waits(null)],
    ['h2', { status: 'Denied', rule: null } as Found],
  ])
  const { sender, leave, bodies, clock, rows } = senderOf(hook, found, 1)
  leave('pending', 'h1')
  leave('pending', 'h2')
  clock.advance(599_999)
  await sender.send()
  t.strictSame([bodies(), rows.length], [[], 2])
  clock.advance(1)
  await sender.send()
  t.strictSame(
    bodies().map(({ hitlId }) => hitlId),
    ['h1'],
  )
  t.strictSame(rows, [])
})

t.test(
  'T23 a chat gets 20 requests of a minute one by one, and the others as one message of the next minute',
  async t => {
    const { sender, leave, bodies, clock, rows } = senderOf(hookOf({ Url, Format: 'slack' }))
    for (let at = 0; at < 43; at++) leave('pending', `h${at}`)
    await sender.send()
    t.equal(bodies().length, 20)
    clock.advance(59_999)
    await sender.send()
    t.equal(bodies().length, 20)
    clock.advance(1)
    await sender.send()
    t.equal(bodies().length, 21)
    t.match(bodies().at(-1).text, '23 more requests wait for review')
    t.strictSame(rows, [])
    leave('pending', 'h99')
    await sender.send()
    t.equal(bodies().length, 22, 'one that comes later has a message of its own')
  },
)

t.test('programs get every event, however many come', async t => {
  const { sender, leave, bodies } = senderOf(hookOf({ Url }))
  for (let at = 0; at < 60; at++) leave('pending', `h${at}`)
  await sender.send()
  t.equal(bodies().length, 60)
})

t.test('PagerDuty gets the ends of requests without being asked to', async t => {
  const hook = hookOf({ Url, Format: 'pagerDuty', Key: 'key' })
  t.ok(
    ['pending', 'released', 'approved', 'denied', 'withdrawn', 'expired'].every(type =>
      queuesOf(receiversOf(hook))[0]!.types.includes(type),
    ),
  )
})
