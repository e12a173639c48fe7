/** Socket Mode: an outgoing WebSocket, which one gateway of a fleet has. */
import t, { type Test } from 'tap'
import { createSlackCall } from '../../../src/hitl/slack/api.ts'
import { SlackSocket } from '../../../src/hitl/slack/socket.ts'
import { openOwnWebSocket } from '../../../src/upstream/own-web-socket.ts'
import { createClock } from '../../fixtures/clock.ts'
import { eventually } from '../../fixtures/gateway.ts'
import { openOwnRequests } from '../../fixtures/own-requests.ts'
import { type FalseSlack, startSlack } from '../../fixtures/slack.ts'

const clock = createClock()

/** The leases that gateways share. */
function createLeases() {
  let held: { readonly owner: string; readonly until: number } | undefined
  return {
    async take(names: readonly string[], { owner, now, until }: { owner: string; now: number; until: number }) {
      if (held !== undefined && held.owner !== owner && held.until > now) return []
      held = { owner, until }
      return names
    },
  }
}

async function start(t: Test, slack: FalseSlack, leases = createLeases(), owner = 'a') {
  const reports: unknown[] = []
  const own = await openOwnRequests(t, { egress: { DenyPrivateNetworks: false } })
  const taken: unknown[] = []
  let isBusy = false
  const socket = new SlackSocket({
    call: createSlackCall({ apiUrl: slack.apiUrl, token: 'xapp-1', ask: own.ask }),
    ...{ deliveries: leases, owner, clock, report: (_: string, error: unknown) => void reports.push(error) },
    connect: (url, handlers) => openOwnWebSocket(own, url, handlers),
    onPayload(payload) {
      if (!isBusy) taken.push(payload)
      return !isBusy
    },
  })
  t.teardown(() => socket.close())
  const setBusy = (busy: boolean) => {
    isBusy = busy
  }
  /** Sweeps until so many connections are open. */
  const connected = (count: number) =>
    eventually(
      async () => {
        clock.advance(1_000)
        await socket.sweep()
        return slack.sockets.size
      },
      size => size === count,
    )
  return { socket, taken, setBusy, connected, reports }
}

t.test('an envelope is confirmed and its click taken, and one that is repeated is confirmed alone', async t => {
  const slack = await startSlack(t)
  const { taken, connected, setBusy } = await start(t, slack)
  await connected(1)
  t.equal(slack.called[0]?.token, 'xapp-1')
  await slack.push({ type: 'block_actions', n: 1 }, 'one')
  await slack.push({ type: 'block_actions', n: 1 }, 'one')
  await eventually(
    () => slack.confirmed.length,
    count => count === 2,
  )
  t.strictSame(taken, [{ type: 'block_actions', n: 1 }])
  setBusy(true)
  await slack.push({ n: 2 }, 'busy')
  setBusy(false)
  await slack.push({ n: 3 }, 'free')
  await eventually(
    () => slack.confirmed,
    ids => ids.includes('free') || ids.includes('busy'),
  )
  t.ok(taken.length >= 2)
})

t.test('a connection that is lost is opened again', async t => {
  const slack = await startSlack(t)
  const { taken, connected } = await start(t, slack)
  await connected(1)
  for (const socket of slack.sockets) socket.destroy()
  await eventually(
    () => slack.sockets.size,
    size => size === 0,
  )
  await connected(1)
  await slack.push({ n: 1 })
  t.strictSame(
    await eventually(
      () => taken,
      ({ length }) => length > 0,
    ),
    [{ n: 1 }],
  )
})

t.test('T81 of two gateways one is connected, and the other once the first is gone', async t => {
  const slack = await startSlack(t)
  const leases = createLeases()
  const first = await start(t, slack, leases, 'a')
  const second = await start(t, slack, leases, 'b')
  await first.connected(1)
  await second.socket.sweep()
  await second.connected(1)
  t.equal(slack.called.length, 1, 'the second has not even asked')
  first.socket.close()
  await eventually(
    () => slack.sockets.size,
    size => size === 0,
  )
  await second.connected(1)
  await slack.push({ n: 1 })
  await eventually(
    () => second.taken.length,
    count => count === 1,
  )
  t.strictSame(first.taken, [])
})

t.test('a WebSocket is opened past the egress guard alone', async t => {
  const slack = await startSlack(t)
  const own = await openOwnRequests(t, { egress: { DenyPrivateNetworks: true } })
  const url = `ws://127.0.0.1:${new URL(slack.apiUrl).port}/link`
  await t.rejects(openOwnWebSocket(own, url, { onText: () => {}, onClose: () => {} }))
  t.equal(slack.sockets.size, 0)
})

t.test('a refused connection is reported, and tried again after a pause', async t => {
  const slack = await startSlack(t)
  slack.answers.set('apps.connections.open', { ok: false, error: 'invalid_auth' })
  const { socket, reports, connected, taken } = await start(t, slack)
  await socket.sweep()
  await eventually(
    () => reports,
    ({ length }) => length === 1,
  )
  t.strictSame(reports, ['apps.connections.open: invalid_auth'])
  await socket.sweep()
  t.equal(slack.called.length, 1, 'not at once')
  slack.answers.delete('apps.connections.open')
  await connected(1)
  await slack.push({ n: 1 }, 'x'.repeat(101))
  await slack.push({ n: 2 }, 'short')
  await eventually(
    () => slack.confirmed,
    ids => ids.includes('short'),
  )
  t.strictSame([taken, slack.confirmed], [[{ n: 2 }], ['short']])
  socket.close()
  const { length } = slack.called
  clock.advance(600_000)
  await socket.sweep()
  t.equal(slack.called.length, length, 'nothing is opened once it is closed')
})
