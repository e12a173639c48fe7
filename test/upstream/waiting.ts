/** Threat T31 of SECURITY.md: which request gets the next connection. */

import t, { type Test } from 'tap'
import { createOrigin } from '../../src/base/origin.ts'
import type { ConnectionSettings } from '../../src/upstream/settings.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { ask, openConnections } from '../fixtures/upstream.ts'

/** Upstreams that answer a request when told, and say which requests came in which order. */
async function start(t: Test, limits: Partial<ConnectionSettings>, count = 1) {
  const held = new Map<string, () => void>()
  const came: string[] = []
  const origins: number[] = []
  for (let i = 0; i < count; i++) {
    const origin = await startOrigin(t, (req, res) => {
      const name = (req.url ?? '').slice(1)
      came.push(name)
      held.set(name, () => void res.end('ok'))
    })
    origins.push(Number(new URL(origin.url).port))
  }
  const connections = openConnections(t, limits)
  const send = (agentId: string, name: string, port = origins[0] ?? 0) =>
    ask(connections, port, { path: `/${name}`, agentId })
  const arrived = (length: number) =>
    eventually(
      () => came.length,
      reached => reached >= length,
    )
  /** Ends a request, and waits for the next one to come. */
  const end = async (name: string) => {
    const before = came.length
    held.get(name)?.()
    await arrived(before + 1)
  }
  return { connections, origins, came, held, send, arrived, end }
}

t.test('one agent has half of the connections at most: requests that never end keep none from the others', async t => {
  const { came, send, arrived, end } = await start(t, { perOrigin: 4 })
  for (let i = 0; i < 4; i++) send('greedy', `g${i}`)
  await arrived(2)
  send('other', 'o0')
  send('other', 'o1')
  await arrived(4)
  t.strictSame(came.slice(2).toSorted(), ['o0', 'o1'], 'at once')
  await end('g0')
  t.equal(came[4], 'g2', 'its own next one takes the place of the one that ended')
})

t.test('free connections stay free when one agent has its half', async t => {
  const { connections, came, held, send, arrived, end } = await start(t, { perOrigin: 4 })
  const [, second] = ['o0', 'o1'].map(name => send('other', name))
  await arrived(2)
  for (let i = 0; i < 4; i++) send('greedy', `g${i}`)
  await arrived(4)
  const third = send('third', 't0')
  await end('o0')
  t.equal(came[4], 't0')
  t.notOk(third.error)
  t.equal(connections.size, 4)
  await end('g0')
  t.equal(came[5], 'g2')
  held.get('o1')?.()
  t.equal((await second?.over)?.outcome, '200 ok')
  send('fourth', 'f0')
  await arrived(7)
  t.equal(came[6], 'f0', 'not g3, which waits for one of its own agent')
})

t.test('with a single connection agents take turns', async t => {
  const { came, send, arrived, end } = await start(t, { perOrigin: 1 })
  send('greedy', 'g0')
  await arrived(1)
  for (const name of ['g1', 'g2']) send('greedy', name)
  send('other', 'o0')
  await end('g0')
  await end(came[1] ?? '')
  t.ok(came.slice(0, 3).includes('o0'))
})

t.test('an agent that uses many connections waits behind one that uses few', async t => {
  const { came, send, arrived, end } = await start(t, { perOrigin: 4 })
  for (const name of ['a0', 'a1']) send('a', name)
  for (const name of ['b0', 'b1']) send('b', name)
  await arrived(4)
  for (const name of ['a2', 'a3']) send('a', name)
  for (const name of ['c0', 'c1']) send('c', name)
  await end('a0')
  await end('b0')
  t.strictSame(came.slice(4), ['c0', 'a2'], 'c had none, then a and c have one each')
})

t.test('one agent fills half of the line, and no more', async t => {
  const { send, arrived } = await start(t, { perOrigin: 1, maxWaiting: 4 })
  send('greedy', 'g0')
  await arrived(1)
  const waiting = [1, 2, 3].map(i => send('greedy', `g${i}`))
  t.equal((await (waiting[2] as (typeof waiting)[0]).over).error?.name, 'UpstreamBusyError')
  t.notOk(send('other', 'o0').error)
})

t.test(
  'a request that waits because all connections are taken is woken when one of another origin is free',
  async t => {
    const { origins, came, held, send, arrived, end } = await start(t, { perOrigin: 4, total: 2 }, 3)
    send('a', 'a0', origins[0])
    send('a', 'a1', origins[0])
    await arrived(2)
    const second = send('b', 'b0', origins[1])
    const third = send('c', 'c0', origins[2])
    await end('a0')
    t.strictSame(came.slice(2), ['b0'], 'in order')
    await end('b0')
    t.equal((await second.over).outcome, '200 ok')
    t.strictSame(came.slice(3), ['c0'])
    held.get('c0')?.()
    t.equal((await third.over).outcome, '200 ok')
  },
)

t.test('a request that is cancelled leaves the line', async t => {
  const { connections, origins, came, send, arrived, end } = await start(t, { perOrigin: 1 })
  send('a', 'a0')
  await arrived(1)
  const gone = send('b', 'gone')
  send('b', 'b0')
  t.ok(connections.cancel(createOrigin('http', '127.0.0.1', origins[0] ?? 0), gone, { agentId: 'b' }))
  await end('a0')
  t.strictSame(came.slice(1), ['b0'])
})
