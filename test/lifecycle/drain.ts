import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { fetchDocumented } from '../fixtures/documented.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { enough, openKept } from '../fixtures/kept.ts'
import { startOrigin } from '../fixtures/origin.ts'

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate)
}

t.test('closing takes no new connection, finishes what is in flight, and then is done', async t => {
  let finish = () => {}
  const origin = await startOrigin(t, (_req, res) => {
    res.write('begun, ')
    finish = () => void res.end('finished')
  })
  const gateway = await startGateway(t)
  const { token } = await gateway.agent()
  const answer = await gateway.proxy(token, origin.url)
  const closed = gateway.close()
  const [error] = await once(connect(gateway.port, '127.0.0.1'), 'error')
  // Another thread may have taken it a moment before it stopped.
  t.match(error.code, /^(?:ECONNREFUSED|ECONNRESET)$/)
  finish()
  t.equal(await answer.text(), 'begun, finished')
  t.equal(await closed, 0, 'nothing was cut off')
})

t.test('the health check fails before the gateway stops accepting, and calls are served meanwhile', async t => {
  const origin = await startOrigin(t)
  const gateway = await startGateway(t, { config: { System: { Server: { StopDelaySeconds: 2 } } } })
  const { token } = await gateway.agent()
  const health = () => fetchDocumented(`${gateway.url}/health/proxy`)
  t.match(await (await health()).json(), { status: 'Healthy' })
  const closed = gateway.close()
  const [failed, served] = await Promise.all([health(), gateway.proxy(token, origin.url)])
  t.match(await failed.json(), { status: 503, code: 'draining' })
  t.equal(served.status, 200)
  t.equal(await closed, 0)
  await t.rejects(health())
})

t.test('what does not finish in time is cut off and counted', async t => {
  const origin = await startOrigin(t, () => {})
  const gateway = await startGateway(t, { config: { System: { Server: { DrainSeconds: 0 } } } })
  const { token } = await gateway.agent()
  const call = gateway.proxy(token, origin.url)
  await until(() => origin.seen.length === 1)
  const cutOff = gateway.close()
  await t.rejects(call)
  t.equal(await cutOff, 1)
})

t.test('what is cut off is on record, whichever thread had it', async t => {
  const origin = await startOrigin(t, () => {})
  const gateway = await startGateway(t, { config: { System: { Server: { Threads: 2, DrainSeconds: 0 } } } })
  const { token } = await gateway.agent()
  const headers = { 'Gateway-Authorization': `Bearer ${token}` }
  const calls = openKept(t, gateway.port).map(client => client.call(`/proxy/${origin.url}/`, { headers }))
  const broken = Promise.allSettled(calls)
  await until(() => origin.seen.length === enough)
  t.equal(await gateway.close(), enough)
  await broken
  const lines = gateway.log.filter(({ message }) => message === 'exchange')
  t.strictSame(
    lines.map(({ ending }) => ending),
    Array(enough).fill('aborted'),
  )
})
