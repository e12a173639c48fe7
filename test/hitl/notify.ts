import { createHmac } from 'node:crypto'
import { createNotifier, type Message, type NotifierOptions } from '../../src/hitl/notify.ts'
import { createClock } from '../fixtures/clock.ts'
import { createTestLog } from '../fixtures/events.ts'
import t from '../fixtures/tap.ts'

const pending = {
  id: 'h1',
  method: 'POST',
  url: 'https://a.example/<b>&',
  agentId: 'agent-1',
  ownerId: 'team-a',
  reason: 'rule "x"',
}
const hook = { Url: 'https://hook.example/key', Format: 'generic', Secret: 'shared', Events: [] } as const

/** A notifier with what it posted and reported. */
function start(options: Partial<NotifierOptions> = {}) {
  const clock = createClock()
  const reports: [string, unknown][] = []
  const report = (what: string, error: unknown) => void reports.push([what, error])
  const events = createTestLog({ names: new Map([['agent-1', 'a<b']]) })
  const posted: Message[] = []
  const post = options.post ?? (async () => 204)
  const notifier = createNotifier({
    hooks: [hook],
    delays: [1, 1],
    ...options,
    clock,
    events,
    report,
    post: (message, signal) => {
      posted.push(message)
      return post(message, signal)
    },
  })
  return { notifier, events, posted, reports, clock }
}

t.test('a hook is told of what waits, as JSON signed with the time', async t => {
  const { notifier, events, posted, clock } = start()
  events.publish('pending', 'h1', pending)
  events.publish('denied', 'h1', {})
  await notifier.idle()
  t.equal(posted.length, 1)
  const { url, headers, body } = posted[0]!
  t.equal(url, hook.Url)
  t.match(JSON.parse(body), { type: 'hitl.pending', hitlId: 'h1', data: pending })
  const time = clock.now() / 1000
  const signature = createHmac('sha256', 'shared').update(`${time}.${body}`).digest('hex')
  t.equal(headers[headers.indexOf('Gateway-Signature') + 1], `t=${time},v1=${signature}`)
})

t.test('Slack gets a text that nobody can put markup into', async t => {
  const hooks = [{ ...hook, Format: 'slack', Secret: undefined, Events: ['pending', 'denied'] } as const]
  const { notifier, events, posted } = start({ hooks })
  events.publish('pending', 'h1', pending)
  events.publish('denied', 'h1', { by: 'reviewer-1' })
  await notifier.idle()
  const texts = posted.map(({ body }) => JSON.parse(body).text)
  t.match(texts[0], 'POST https://a.example/&lt;b&gt;&amp;')
  t.match(texts[0], 'Agent a&lt;b (agent-1) of team-a')
  t.equal(texts[1], 'Request h1: denied\nby reviewer-1')
  t.notOk(posted[0]?.headers.includes('Gateway-Signature'))
})

t.test('a hook and Slack are told which agent was quarantined and why', async t => {
  const Events = ['quarantined'] as const
  const hooks = [{ ...hook, Events } as const, { ...hook, Format: 'slack', Events } as const]
  const { notifier, events, posted } = start({ hooks })
  const data = { agentId: 'agent-1', agentName: 'a<b', cause: 'denials' }
  events.publish('quarantined', null, data)
  await notifier.idle()
  const [generic, slack] = posted.map(({ body }) => JSON.parse(body))
  t.match(generic, { type: 'hitl.quarantined', hitlId: null, data })
  t.strictSame(slack, { text: 'Agent agent-1: quarantined (denials)' })
})

t.test('with a public URL, messages lead to the page of the request or agent', async t => {
  const Events = ['pending', 'quarantined'] as const
  const hooks = [{ ...hook, Events } as const, { ...hook, Format: 'slack', Events } as const]
  const { notifier, events, posted } = start({ hooks, publicUrl: 'https://gateway.example' })
  events.publish('pending', 'h1', pending)
  events.publish('quarantined', null, { agentId: 'agent-1', cause: 'denials' })
  await notifier.idle()
  const [request, agent] = ['requests/h1', 'agents/agent-1'].map(page => `https://gateway.example/console/#/${page}`)
  const sent = posted.map(({ body }) => JSON.parse(body))
  t.same(
    sent.flatMap(({ url }) => url ?? []),
    [request, agent],
  )
  const texts = sent.flatMap(({ text }) => text ?? [])
  t.ok(texts[0].endsWith(`\n<${request}|Open in the console>`))
  t.ok(texts[1].endsWith(`\n<${agent}|Open in the console>`))
  t.match(texts[0], '&lt;b&gt;', 'the rest is escaped')
})

t.test('a hook that fails for now is tried again, with nothing out of order', async t => {
  const answers = [503, new TypeError('reset'), 200, 429, 200]
  const post = async () => {
    const answer = answers.shift()!
    if (answer instanceof Error) throw answer
    return answer as number
  }
  const { notifier, events, posted, reports } = start({ post })
  for (const id of ['h1', 'h2']) events.publish('pending', id, pending)
  await notifier.idle()
  t.same(
    posted.map(({ body }) => JSON.parse(body).hitlId),
    ['h1', 'h1', 'h1', 'h2', 'h2'],
  )
  t.same(reports, [])
})

t.test('a hook that refuses is not asked again, and one that stays down is given up', async t => {
  const refusing = start({ post: async () => 302 })
  refusing.events.publish('pending', 'h1', pending)
  await refusing.notifier.idle()
  t.equal(refusing.posted.length, 1)
  t.same(refusing.reports, [['webhook 0 was not told of pending h1', 'answered 302']])

  const down = start({ post: () => Promise.reject(new TypeError('refused')) })
  down.events.publish('pending', 'h1', pending)
  await down.notifier.idle()
  t.equal(down.posted.length, 3)
  t.match(down.reports, [['webhook 0 was not told of pending h1', { message: 'refused' }]])
})

t.test('one slow hook delays no other, and holds a bounded number of events', async t => {
  const release = Promise.withResolvers<number>()
  const hooks = [hook, { ...hook, Url: 'https://fast.example/' }]
  const { notifier, events, posted, reports } = start({
    hooks,
    post: async ({ url }) => (url === hook.Url ? release.promise : 200),
  })
  for (let count = 0; count < 1_002; count++) {
    events.publish('pending', `h${count}`, {})
    await null
  }
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
  t.equal(posted.filter(({ url }) => url !== hook.Url).length, 1_002)
  t.equal(posted.filter(({ url }) => url === hook.Url).length, 1)
  t.equal(reports.length, 1)
  release.resolve(200)
  await notifier.idle()
  t.equal(posted.length, 1_002 + 1_001)
})

t.test('a notifier that is closed ends its pauses and tells nothing more', async t => {
  const { notifier, events, posted } = start({ post: async () => 503, delays: [600_000] })
  events.publish('pending', 'h1', pending)
  await new Promise(setImmediate)
  notifier.close()
  events.publish('pending', 'h2', pending)
  await notifier.idle()
  t.equal(posted.length, 1)
})
