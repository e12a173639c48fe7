/** Threat T31 of SECURITY.md: which request gets the next connection. */

import { createOrigin } from '../../src/base/origin.ts'
import type { ConnectionSettings } from '../../src/upstream/connection-settings.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import t, { type Test } from '../fixtures/tap.ts'
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

t.test('an agent that uses many connections waits behind one that uses few', async t => {
  const { came, send, arrived, end } = await start(t, { perOrigin: 4 })
  for (let i = 0; i < 4; i++) send('greedy', `g${i}`)
  await arrived(4)
  send('greedy', 'g4')
  send('greedy', 'g5')
  send('other', 'o0')
  send('other', 'o1')
  send('other', 'o2')
  await end('g0')
  await end('g1')
  t.strictSame(came.slice(4), ['o0', 'o1'])
  await end('g2')
  await end('g3')
  t.strictSame(came.slice(4).toSorted(), ['g4', 'g5', 'o0', 'o1'], 'half of them for each while both want some')
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
