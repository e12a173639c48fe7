/** Pushes: who gets them, what they say, and when a browser is dropped. Threat T86. */
import { createDecipheriv, createECDH, hkdfSync } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import type { HitlEvent } from '../../../src/hitl/events.ts'
import { createPush, idOf } from '../../../src/hitl/push/push.ts'
import { createClock } from '../../fixtures/clock.ts'
import { openSqliteStore } from '../../fixtures/sqlite.ts'
import { testdir } from '../../fixtures/testdir.ts'
import { agent, entry } from '../../storage/contract/samples.ts'

const clock = createClock()
const store = await openSqliteStore({ directory: join(testdir(t), 'data'), clock })
t.teardown(() => store.close())
for (const id of ['ada', 'bob']) await store.agents.insert(agent(id), 'hash', entry('agent.register'))

const posted: { readonly url: string; readonly headers: readonly string[]; readonly body: Buffer }[] = []
const answers = new Map<string, number>()
let failing: Error | undefined
const reports: string[] = []
const reviewers = new Set(['ada', 'bob'])
const by = { actor: 'ada', requestId: null }
const push = createPush({
  ...{
    store: store.subscriptions,
    clock,
    contact: 'https://gateway.example',
    hosts: ['push.example', '*.other.example', '.push.example', 'down.example'],
  },
  sealingKeys: [new Uint8Array(32)],
  post: async message => {
    if (failing !== undefined) throw failing
    posted.push(message)
    return answers.get(message.url) ?? 201
  },
  reviewerOf: id => (reviewers.has(id) ? {} : undefined),
  report: what => void reports.push(what),
})
// Browsers subscribe with it: it is there before the first subscription.
await push.publicKey()
const browser = createECDH('prime256v1')
browser.generateKeys()
const auth = Buffer.alloc(16, 7)
const keys = { p256dh: browser.getPublicKey('base64url'), auth: auth.toString('base64url') }
const at = (name: string, host = 'push.example') => ({ endpoint: `https://${host}/${name}`, keys })
const { signal } = new AbortController()
let count = 0
const event = (data: object = {}): HitlEvent => ({
  ...{ id: `e${++count}`, type: 'pending', at: clock.now(), hitlId: 'h1' },
  data: {
    ...{ id: 'h1', agentId: 'a1', agentName: 'shop-bot', rule: 'refunds', url: 'https://secret.example/x?y=z' },
    expiresAt: new Date(clock.now() + 60_000).toISOString(),
    ...data,
  },
})
const [receiver] = push.receivers
const send = (one = event()) => receiver!.send(one, signal)
const ids = async () => (await store.subscriptions.all()).map(({ endpoint }) => endpoint).sort()

/** As a browser does (RFC 8291 section 3). */
function opened(body: Buffer): object {
  const [salt, own, sealed] = [body.subarray(0, 16), body.subarray(21, 86), body.subarray(86)]
  const derive = (secret: Uint8Array, by: Uint8Array, info: Uint8Array, length: number) =>
    Buffer.from(hkdfSync('sha256', secret, by, info, length))
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), browser.getPublicKey(), own])
  const secret = derive(browser.computeSecret(own), auth, info, 32)
  const key = derive(secret, salt, Buffer.from('Content-Encoding: aes128gcm\0'), 16)
  const cipher = createDecipheriv(
    'aes-128-gcm',
    key,
    derive(secret, salt, Buffer.from('Content-Encoding: nonce\0'), 12),
  )
  cipher.setAuthTag(sealed.subarray(-16))
  const plain = Buffer.concat([cipher.update(sealed.subarray(0, -16)), cipher.final()])
  return JSON.parse(plain.subarray(0, -1).toString())
}

t.beforeEach(async () => {
  posted.length = 0
  answers.clear()
  for (const id of ['ada', 'bob']) reviewers.add(id)
  for (const { id, agentId } of await store.subscriptions.all()) await store.subscriptions.remove(id, agentId, null)
})

t.test('a push says agent and rule alone, encrypted for the browser, until the request expires', async t => {
  t.equal(await push.subscribe('ada', at('1'), by), undefined)
  t.equal(await send(), undefined)
  const [{ url, headers, body } = { url: '', headers: [], body: Buffer.alloc(0) }] = posted
  t.equal(url, at('1').endpoint)
  t.strictSame(opened(body), { agent: 'shop-bot', rule: 'refunds', id: 'h1' })
  t.strictSame(headers.slice(0, 6), ['TTL', '60', 'Urgency', 'high', 'Content-Encoding', 'aes128gcm'])
  t.match(headers.at(-1), new RegExp(`^vapid t=.*, k=${await push.publicKey()}$`))
  t.equal(await receiver!.sendMore(event(), 23, signal), undefined)
  t.strictSame(opened(posted[1]!.body), { count: 23 })
})

t.test('names that agents chose cannot hide, reorder or run on', async t => {
  await push.subscribe('ada', at('1'), by)
  await send(event({ agentName: `\u202e${'x'.repeat(500)}` }))
  const { agent } = opened(posted[0]!.body) as { readonly agent: string }
  t.notMatch(agent, /\u202e/)
  t.ok(agent.length <= 200)
})

t.test('only push services of the settings are called, over TLS at the usual port', async t => {
  for (const endpoint of [
    'https://elsewhere.example/1',
    'http://push.example/1',
    'https://push.example:8443/1',
    'https://push.example@elsewhere.example/1',
    'https://other.example.elsewhere.example/',
    'https://127.0.0.1/1',
    'nothing',
  ]) {
    t.match(await push.subscribe('ada', { endpoint, keys }, by), { refusal: 'invalid_body' }, endpoint)
  }
  t.match(await push.subscribe('ada', { ...at('1'), keys: { ...keys, auth: 'short' } }, by), {
    refusal: 'invalid_body',
  })
  t.strictSame(await ids(), [])
  await push.subscribe('ada', at('1', 'a.other.example'), by)
  await send()
  t.strictSame(posted, [], 'each service has a queue of its own')
})

t.test('a browser that is gone, and one whose person may not decide, is dropped', async t => {
  for (const name of ['404', '410', '200']) await push.subscribe('ada', at(name), by)
  await push.subscribe('bob', at('bob'), by)
  answers.set(at('404').endpoint, 404).set(at('410').endpoint, 410)
  reviewers.delete('bob')
  t.equal(await send(), undefined)
  t.notOk(posted.some(({ url }) => url === at('bob').endpoint))
  t.strictSame(await ids(), [at('200').endpoint])
})

t.test('a host that is in several patterns gets each push once', async t => {
  await push.subscribe('ada', at('1'), by)
  await push.subscribe('ada', at('2', 'a.other.example'), by)
  await push.subscribe('ada', at('3', 'b.push.example'), by)
  const one = event()
  for (const { send } of push.receivers) await send(one, signal)
  t.strictSame(posted.map(({ url }) => url.at(-1)).sort(), ['1', '2', '3'])
})

t.test('a test message goes to each browser, and a service that takes none is left alone', async t => {
  for (const name of ['1', '2', '404']) await push.subscribe('ada', at(name), by)
  for (const name of ['1', '2']) await push.subscribe('bob', at(name, 'down.example'), by)
  await store.subscriptions.keep(
    { id: 'old', agentId: 'bob', endpoint: 'https://former.service/1', ...keys, createdAt: 1 },
    ...([5, entry('push.subscribe')] as const),
  )
  answers.set(at('404').endpoint, 404)
  for (const name of ['1', '2']) answers.set(at(name, 'down.example').endpoint, 500)
  const tested = await push.test(signal)
  t.strictSame(
    [...tested].sort((a, b) => a.accepted - b.accepted),
    [
      { name: 'down.example', accepted: 0, failure: 'answered 500' },
      { name: 'push.example', accepted: 2, failure: null },
    ],
  )
  t.equal(posted.length, 4)
  t.match(opened(posted[0]!.body), { agent: 'test', rule: 'A test message: nothing waits', id: null })
  failing = new Error('push.example: refused by Egress')
  const [unreached] = await push.test(signal)
  failing = undefined
  t.match(unreached, { accepted: 0, failure: 'push.example: refused by Egress' })
})

t.test('after a failure the browsers that have the push do not get it again', async t => {
  for (const name of ['1', '2']) await push.subscribe('ada', at(name), by)
  answers.set(at('2').endpoint, 503)
  const one = event()
  t.match(await send(one), { failure: 'answered 503', isPassing: true })
  answers.delete(at('2').endpoint)
  t.equal(await send(one), undefined)
  t.strictSame(posted.map(({ url }) => url.at(-1)).sort(), ['1', '2', '2'])
})

t.test(
  'a push that is refused for good is told and not sent again; an event may lack a name, a rule and time',
  async t => {
    await push.subscribe('ada', at('1'), by)
    answers.set(at('1').endpoint, 413)
    const one = event({ agentName: null, rule: null, expiresAt: new Date(clock.now() - 1).toISOString() })
    t.equal(await send(one), undefined)
    t.strictSame(reports.splice(0), ['a push was not accepted'])
    t.equal(await send(one), undefined)
    t.equal(posted.length, 1)
    t.strictSame(opened(posted[0]!.body), { agent: 'a1', id: 'h1' })
    t.strictSame(posted[0]!.headers.slice(0, 2), ['TTL', '0'])
    answers.set(at('1').endpoint, 429)
    t.match(await send(), { failure: 'answered 429', isPassing: true })
  },
)

t.test('the longest push is one record', async t => {
  await push.subscribe('ada', at('1'), by)
  await send(event({ agentName: '\u3042'.repeat(300), rule: '"\\'.repeat(300) }))
  t.ok(posted[0]!.body.length <= 4_096)
})

t.test('a person has five browsers at most, and switches off their own alone', async t => {
  for (const name of ['1', '2', '3', '4', '5', '6']) {
    clock.advance(1)
    await push.subscribe('ada', at(name), by)
  }
  t.strictSame(
    await ids(),
    ['2', '3', '4', '5', '6'].map(name => at(name).endpoint),
  )
  t.equal(await push.unsubscribe('bob', idOf(at('2').endpoint), by), false)
  t.equal(await push.unsubscribe('ada', idOf(at('2').endpoint), by), true)
  t.equal((await ids()).length, 4)
})
