import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { type Seen, startOrigin } from '../fixtures/origin.ts'
import { startReview } from '../fixtures/review.ts'
import { testdir } from '../fixtures/testdir.ts'

/** An address that hooks are sent to, and the requests as they come in whole. */
async function startHook(t: Test, answer: (count: number) => number = () => 204) {
  const waiting: ((seen: Seen) => void)[] = []
  const came: Seen[] = []
  const origin = await startOrigin(t, (req, res, seen) => {
    req.on('end', () => {
      setImmediate(() => {
        res.writeHead(answer(origin.seen.length), { Location: '/elsewhere' }).end('x'.repeat(1_000))
        came.push(seen)
        waiting.shift()?.(came.shift()!)
      })
    })
  })
  const next = () =>
    came.length > 0 ? Promise.resolve(came.shift()!) : new Promise<Seen>(resolve => waiting.push(resolve))
  return { ...origin, next }
}

const settings = (hooks: readonly object[], more: object = {}) => ({ HumanInTheLoop: { Webhooks: hooks }, ...more })

t.test(
  'a webhook of this owner gets what waits, signed, in JSON or for Slack, and nothing holds up the agent',
  async t => {
    const [generic, slack] = [await startHook(t), await startHook(t)]
    const review = await startReview(t, {
      config: settings([
        { Url: `${generic.url}/hook?key=k`, Secret: 'b64-7Qx2mLr9TfWz', Events: ['pending', 'denied'] },
        { Url: slack.url, Format: 'slack', Owners: ['team-a'] },
        { Url: `${slack.url}/others`, Owners: ['team-b'] },
      ]),
    })
    const id = await review.hold('/things', { headers: { 'X-Api-Key': 'of-the-upstream' } })
    const { method, target, headers, body } = await generic.next()
    t.match({ method, target, type: headers['content-type'] }, { method: 'POST', target: '/hook?key=k', type: /json/ })
    const { agentName, url } = JSON.parse(body.toString()).data
    t.strictSame({ agentName, url }, { agentName: 'tester', url: `${review.origin.url}/things` })
    t.match(JSON.parse(body.toString()), { type: 'hitl.pending', hitlId: id, data: { agentId: review.bot.id } })
    t.notMatch(body.toString(), 'of-the-upstream')
    const [, time, signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['gateway-signature']))!
    t.equal(signature, createHmac('sha256', 'b64-7Qx2mLr9TfWz').update(`${time}.${body}`).digest('hex'))
    const text = (await slack.next()).body.toString()
    for (const fact of [`POST ${review.origin.url}/things`, id, `tester (${review.bot.id})`]) t.match(text, fact)
    await review.deny(id)
    t.match(JSON.parse((await generic.next()).body.toString()), { type: 'hitl.denied', hitlId: id })
    t.equal(slack.seen.length, 1)
  },
)

t.test('a hook that fails is tried again, and a redirect is not followed', async t => {
  const hook = await startHook(t, count => (count === 1 ? 503 : 302))
  const review = await startReview(t, { config: settings([{ Url: `${hook.url}/hook` }]) })
  await review.hold('/things')
  const [first, second] = [await hook.next(), await hook.next()]
  t.strictSame(first.body, second.body)
  // The second answer was for good: the next event is the next to come.
  const id = await review.hold('/things')
  t.match(JSON.parse((await hook.next()).body.toString()), { hitlId: id })
  t.strictSame([...new Set(hook.seen.map(({ target }) => target))], ['/hook'])
  t.match(
    review.log.filter(({ level }) => level === 'error').map(({ message }) => message),
    [/^webhook 0 was not told of pending/],
  )
})

t.test('a hook at a refused address stops the start', async t => {
  const refused = [
    'http://169.254.169.254/latest',
    'http://0xa9.0xfe.169.254/',
    'http://[::ffff:169.254.169.254]/',
    'http://metadata.google.internal/',
    'http://blocked.example/hook',
    'http://[fe80::1]/',
  ]
  const hooks = ['https://hooks.example/', ...refused].map(Url => ({ Url }))
  const config = settings(hooks, { Egress: { DenyHosts: ['blocked.example'] } })
  const error = await startGateway(t, { directory: testdir(t), config }).catch((reason: Error) => reason)
  t.match(error, { name: 'StartupError' })
  t.strictSame(
    String((error as Error).message)
      .split('\n')
      .map(line => line.split(': ')[0]),
    refused.map((_, index) => `HumanInTheLoop:Webhooks[${index + 1}]:Url`),
  )
})

t.test('a hook whose name leads to a refused address is never connected to', async t => {
  let connections = 0
  const trap = createServer(socket => {
    connections += 1
    socket.destroy()
  })
  await new Promise<void>(resolve => trap.listen(0, '127.0.0.1', resolve))
  t.teardown(() => trap.close())
  const { port } = trap.address() as { port: number }
  const review = await startReview(t, {
    config: settings([{ Url: `http://hooks.example:${port}/secret-key` }], {
      Egress: { DenyPrivateNetworks: true, AllowCidrs: ['127.0.0.2/32'] },
    }),
    lookup: async () => ['93.184.216.34', '127.0.0.1'],
  })
  const reports = () => review.log.filter(({ message }) => message.startsWith('webhook 0'))
  const held = await review.proxy(review.bot.token, 'http://127.0.0.2:9/', { method: 'POST' })
  t.equal(held.status, 202)
  await review.close()
  t.match(reports(), [{ level: 'error', error: { message: 'hooks.example: refused by Egress' } }])
  t.notMatch(JSON.stringify(reports()), 'secret-key')
  t.equal(connections, 0)
})

t.test('a hook that does not answer keeps the gateway from stopping for moments only', async t => {
  const silent = createServer(() => {})
  await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
  t.teardown(() => silent.close())
  const { port } = silent.address() as { port: number }
  const review = await startReview(t, { config: settings([{ Url: `http://127.0.0.1:${port}/` }]) })
  const [[socket]] = await Promise.all([once(silent, 'connection'), review.hold('/things')])
  const cut = once(socket, 'close')
  socket.resume()
  t.equal(await review.close(), 0)
  await cut
})
