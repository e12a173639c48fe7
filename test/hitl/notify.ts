import { createHmac } from 'node:crypto'
import t from 'tap'
import type { Hook, Post, WebhookMessage } from '../../src/hitl/messages/message.ts'
import { createNotifier, type NotifierOptions } from '../../src/hitl/notify.ts'
import { subscriptionsOf, webhookReceiver } from '../../src/hitl/receiver.ts'
import { eventData } from '../../src/hitl/view.ts'
import { type Delivery, type DeliveryTable, hooksFor } from '../../src/storage/deliveries.ts'
import type { EventNote } from '../../src/storage/events.ts'
import { StoreError } from '../../src/storage/store.ts'
import { createClock, type ManualClock } from '../fixtures/clock.ts'
import { createTestLog, stored } from '../fixtures/events.ts'
import { eventually } from '../fixtures/gateway.ts'
import { hookOf, receiversOf } from '../fixtures/hooks.ts'

const pending = {
  id: 'h1',
  method: 'POST',
  url: 'https://a.example/<b>&',
  agentId: 'agent-1',
  ownerId: 'team-a',
  reason: 'rule "x"',
}
const hook = hookOf({ Url: 'https://hook.example/key', Secret: 'shared' })

/** The messages and leases that gateways share. */
function createTable(hooks: readonly Hook[]) {
  const rows: (Delivery & { readonly hook: string })[] = []
  const owners = new Map<string, { readonly owner: string; readonly until: number }>()
  let count = 0
  const table: { -readonly [M in keyof DeliveryTable]: DeliveryTable[M] } = {
    async take(names, { owner, now, until }) {
      const free = names.filter(name => {
        const held = owners.get(name)
        return held === undefined || held.owner === owner || held.until <= now
      })
      for (const name of free) owners.set(name, { owner, until })
      return free
    },
    next: async (hook, limit) => rows.filter(row => row.hook === hook).slice(0, limit),
    async remove(gone) {
      for (const { id } of gone) {
        const index = rows.findIndex(row => row.id === id)
        if (index >= 0) rows.splice(index, 1)
      }
    },
    async leave(owner) {
      for (const [name, held] of owners) if (held.owner === owner) owners.delete(name)
    },
    prune: async () => [],
  }
  const write = (note: EventNote): void => {
    const event = `e${++count}`
    for (const hook of hooksFor(note.type, subscriptionsOf(receiversOf(...hooks))))
      rows.push({ id: ++count, event, hook, note })
  }
  return { table, rows, write }
}

type Shared = ReturnType<typeof createTable>

interface Setup extends Partial<NotifierOptions> {
  readonly hooks?: readonly Hook[]
  readonly post?: Post
  readonly publicUrl?: string
  readonly shared?: Shared
  readonly clock?: ManualClock
}

/** A notifier with what it posted and reported, which has the leases of its hooks. */
async function start(options: Setup = {}) {
  const { hooks = [hook], clock = createClock(), shared = createTable(hooks), owner = 'a' } = options
  const reports: [string, unknown][] = []
  const report = (what: string, error: unknown) => void reports.push([what, error])
  const events = createTestLog()
  const posted: WebhookMessage[] = []
  const post = options.post ?? (async () => 204)
  const notifier = createNotifier({
    delays: [1, 1],
    ...options,
    receivers: hooks.map((hook, index) =>
      webhookReceiver(hook, {
        ...{ index, clock, publicUrl: options.publicUrl },
        post: (message, signal) => {
          posted.push(message)
          return post(message, signal)
        },
      }),
    ),
    ...{ clock, events, report, owner, store: { deliveries: shared.table } },
    ...{ find: async () => undefined, ownerOf: () => undefined },
    describe: event => eventData(event, id => (id === 'agent-1' ? 'a<b' : undefined)),
  })
  await notifier.sweep()
  const publish: typeof events.publish = (type, hitlId, data) => {
    shared.write(stored(0, type, hitlId, data))
    events.publish(type, hitlId, data)
  }
  const ids = () => posted.map(({ body }) => JSON.parse(body).hitlId)
  return { notifier, publish, posted, ids, reports, clock, shared }
}

t.test('a hook gets what waits, as JSON signed with the time', async t => {
  const { notifier, publish, posted, clock } = await start()
  publish('pending', 'h1', pending)
  publish('denied', 'h1', {})
  await notifier.idle()
  t.equal(posted.length, 1)
  const { url, headers, body } = posted[0]!
  t.equal(url, hook.Url)
  t.match(JSON.parse(body), { type: 'hitl.pending', hitlId: 'h1', data: pending })
  const time = clock.now() / 1000
  const signature = createHmac('sha256', 'shared').update(`${time}.${body}`).digest('hex')
  t.equal(headers[headers.indexOf('Gateway-Signature') + 1], `t=${time},v1=${signature}`)
})

t.test('a hook gets which agent was quarantined and why', async t => {
  const { notifier, publish, posted } = await start({ hooks: [hookOf({ ...hook, Events: ['quarantined'] })] })
  const data = { agentId: 'agent-1', agentName: 'a<b', cause: 'denials' }
  publish('quarantined', null, data)
  await notifier.idle()
  t.match(JSON.parse(posted[0]!.body), { type: 'hitl.quarantined', hitlId: null, data })
})

t.test('with a public URL, messages lead to the page of the request or agent', async t => {
  const hooks = [hookOf({ ...hook, Events: ['pending', 'quarantined'] })]
  const { notifier, publish, posted } = await start({ hooks, publicUrl: 'https://gateway.example' })
  publish('pending', 'h1', pending)
  publish('quarantined', null, { agentId: 'agent-1', cause: 'denials' })
  await notifier.idle()
  t.strictSame(
    posted.map(({ body }) => JSON.parse(body).url),
    ['requests/h1', 'agents/agent-1'].map(page => `https://gateway.example/console/#/${page}`),
  )
})

t.test('a hook that fails for now is tried again, with nothing out of order', async t => {
  const answers = [503, new TypeError('reset'), 200, 429, 200]
  const post = async () => {
    const answer = answers.shift()!
    if (answer instanceof Error) throw answer
    return answer as number
  }
  const { notifier, publish, ids, reports } = await start({ post })
  for (const id of ['h1', 'h2']) publish('pending', id, pending)
  await notifier.idle()
  t.strictSame(ids(), ['h1', 'h1', 'h1', 'h2', 'h2'])
  t.strictSame(reports, [])
})

t.test('a hook that refuses is not asked again, and one that stays down is given up', async t => {
  const refusing = await start({ post: async () => 302 })
  refusing.publish('pending', 'h1', pending)
  await refusing.notifier.idle()
  t.equal(refusing.posted.length, 1)
  t.strictSame(refusing.reports, [['webhook 0 was not told of pending h1', 'answered 302']])

  const down = await start({ post: () => Promise.reject(new TypeError('refused')) })
  down.publish('pending', 'h1', pending)
  await down.notifier.idle()
  t.equal(down.posted.length, 3)
  t.match(down.reports, [['webhook 0 was not told of pending h1', { message: 'refused' }]])
})

t.test('one slow hook delays no other', async t => {
  const release = Promise.withResolvers<number>()
  const hooks = [hook, { ...hook, Url: 'https://fast.example/' }]
  const { notifier, publish, posted } = await start({
    hooks,
    post: async ({ url }) => (url === hook.Url ? release.promise : 200),
  })
  const all = Array.from({ length: 50 }, (_, count) => `h${count}`)
  for (const id of all) publish('pending', id, {})
  const toFast = () => posted.filter(({ url }) => url !== hook.Url)
  await eventually(
    () => toFast().length,
    count => count === all.length,
  )
  t.equal(posted.length, all.length + 1)
  release.resolve(200)
  await notifier.idle()
  t.strictSame(
    toFast().map(({ body }) => JSON.parse(body).hitlId),
    all,
  )
  t.equal(posted.length, 2 * all.length)
})

t.test('when the gateway that sends dies, another one goes on, and repeats what may have been sent', async t => {
  const stuck = Promise.withResolvers<number>()
  const first = await start({ post: async ({ body }) => (body.includes('h2') ? stuck.promise : 200) })
  const second = await start({ shared: first.shared, clock: first.clock, owner: 'b' })
  for (const id of ['h1', 'h2', 'h3']) first.publish('pending', id, {})
  await eventually(
    () => first.posted.length,
    count => count === 2,
  )
  first.clock.advance(29_999)
  await second.notifier.sweep()
  await second.notifier.idle()
  t.strictSame(second.ids(), [], 'the lease lasts')
  first.clock.advance(10_000)
  await second.notifier.sweep()
  await second.notifier.idle()
  t.strictSame(second.ids(), ['h2', 'h3'])
  t.equal(JSON.parse(second.posted[0]!.body).id, JSON.parse(first.posted[1]!.body).id, 'as the same event')
  stuck.resolve(200)
  await first.notifier.idle()
  second.publish('pending', 'h4', {})
  first.publish('pending', 'h5', {})
  await Promise.all([first.notifier.idle(), second.notifier.idle()])
  t.strictSame(first.ids(), ['h1', 'h2'], 'the first one sends nothing more')
  t.strictSame(second.ids(), ['h2', 'h3', 'h4', 'h5'])
})

for (const [which, move] of [
  ['the steady clock', (clock: ManualClock) => clock.advance(30_000)],
  ['the wall clock, of a machine that was paused', (clock: ManualClock) => clock.jump(30_000)],
] as const) {
  t.test(`nothing is sent once the lease is over by ${which}`, async t => {
    const { notifier, publish, posted, clock } = await start()
    move(clock)
    publish('pending', 'h1', {})
    await notifier.idle()
    t.equal(posted.length, 0)
    clock.advance(10_000)
    await notifier.sweep()
    await notifier.idle()
    t.equal(posted.length, 1)
  })
}

t.test('what was sent is not sent again when the store cannot remove it', async t => {
  const { notifier, publish, ids, shared } = await start()
  const { remove } = shared.table
  shared.table.remove = () => Promise.reject(new StoreError('away'))
  publish('pending', 'h1', {})
  await notifier.idle()
  shared.table.remove = remove
  publish('pending', 'h2', {})
  await notifier.idle()
  t.strictSame(ids(), ['h1', 'h2'])
  t.strictSame(shared.rows, [])
})

t.test('an event that cannot be read is reported, and holds up no other', async t => {
  const { notifier, publish, ids, reports, shared } = await start()
  shared.write({ ...stored(0, 'pending', 'h1'), data: { agentId: 'agent-1', of: 'another version' } })
  publish('pending', 'h2', {})
  await notifier.idle()
  t.strictSame(ids(), ['h2'])
  t.match(reports, [['an event for a message could not be read', RangeError]])
})

t.test('a notifier that is closed ends its pauses, and leaves what it did not send to the next one', async t => {
  const first = await start({ post: async () => 503, delays: [600_000] })
  first.publish('pending', 'h1', pending)
  await eventually(
    () => first.posted.length,
    count => count === 1,
  )
  await first.notifier.close()
  first.publish('pending', 'h2', pending)
  await first.notifier.idle()
  t.strictSame(first.ids(), ['h1'])
  t.match(first.reports, [['webhook 0 has not been told yet of pending h1', 'answered 503']])
  const second = await start({ shared: first.shared, clock: first.clock, owner: 'b' })
  await second.notifier.idle()
  t.strictSame(second.ids(), ['h1', 'h2'])
})
