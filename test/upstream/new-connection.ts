/** A request that wants a new connection, because a kept one broke under it. */

import t from 'tap'
import { eventually } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { ask, openConnections } from '../fixtures/upstream.ts'

t.test('it gets none that was used before, though one is free', async t => {
  const origin = await startOrigin(t)
  const connections = openConnections(t)
  await ask(connections, origin.port).over
  t.match(await ask(connections, origin.port, { fresh: true }).over, { outcome: '200 hello from upstream' })
  t.strictSame([origin.connections(), connections.size], [2, 2])
  await ask(connections, origin.port).over
  t.equal(origin.connections(), 2, 'the next request goes over one of both')
})

t.test('where there may be no more, an idle connection makes room', async t => {
  const origin = await startOrigin(t)
  const connections = openConnections(t, { perOrigin: 1 })
  await ask(connections, origin.port).over
  t.match(await ask(connections, origin.port, { fresh: true }).over, { outcome: '200 hello from upstream' })
  t.strictSame([origin.connections(), connections.size], [2, 1])
})

t.test('where all are in use, it waits, and takes the place of the next that is done', async t => {
  const answers: (() => void)[] = []
  const origin = await startOrigin(t, (req, res) => {
    if (req.url === '/held') answers.push(() => void res.end('ok'))
    else res.end('ok')
  })
  const connections = openConnections(t, { perOrigin: 1 })
  const first = ask(connections, origin.port, { path: '/held' })
  await eventually(
    () => answers.length,
    count => count === 1,
  )
  const again = ask(connections, origin.port, { path: '/again', fresh: true })
  const last = ask(connections, origin.port, { path: '/last' })
  answers[0]?.()
  t.match(await first.over, { outcome: '200 ok' })
  t.match(await again.over, { outcome: '200 ok' })
  t.match(await last.over, { outcome: '200 ok' })
  t.strictSame([origin.connections(), connections.size], [2, 1])
})
