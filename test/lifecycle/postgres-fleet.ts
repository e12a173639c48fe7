/** Gateways on one schema: each serves what any of them was told, and one that was cut off comes back by itself. */

import t from 'tap'
import { eventually, onDatabase, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { startTcpProxy } from '../fixtures/tcp-proxy.ts'

/** Settings of gateways that are fenced soon, and yet not by a machine that is busy. */
const quick = (...of: Parameters<typeof onDatabase>) => ({ ...onDatabase(...of), Fleet: { FenceAfterSeconds: 5 } })

const revoke = async ({ manage }: TestGateway, id: string) => (await manage('POST', `/agents/${id}/revoke`)).status

t.test('an agent of one gateway is served by the other, and refused there once its revocation is answered', async t => {
  const origin = await startOrigin(t)
  const config = onDatabase(await createSchema(t))
  const [a, b] = [await startGateway(t, { config }), await startGateway(t, { config })]
  const policy = await a.policy({ name: 'ours', default: 'Allow' })
  for (const [here, there] of [
    [a, b],
    [b, a],
  ] as const) {
    const agent = await here.agent({ policyName: policy })
    t.equal((await there.proxy(agent.token, origin.url)).status, 200)
    t.equal(await revoke(here, agent.id), 200)
    t.equal((await there.proxy(agent.token, origin.url)).status, 403)
  }
  await a.close()
  const agent = await b.agent()
  t.equal((await b.proxy(agent.token, origin.url)).status, 200, 'nobody waits for one that has stopped')
})

t.test('T02 an agent does not reach a gateway through another one', async t => {
  const config = onDatabase(await createSchema(t))
  const [a, b] = [await startGateway(t, { config }), await startGateway(t, { config })]
  const agent = await a.agent()
  for (const [here, there] of [
    [a, b],
    [b, a],
  ] as const) {
    const url = `http://localhost:${there.port}/health`
    const refused = await eventually(
      () => here.proxy(agent.token, url),
      ({ status }) => status === 403,
    )
    t.match(await refused.json(), { code: 'egress_denied' })
  }
})

t.test('three first starts at once make one admin', async t => {
  const config = onDatabase(await createSchema(t))
  const gateways = await Promise.all([1, 2, 3].map(() => startGateway(t, { config })))
  for (const { manage } of gateways) {
    t.match(JSON.parse((await manage('GET', '/agents')).text), { totalCount: 1 }, 'and each lets it log in')
    const { items } = JSON.parse((await manage('GET', '/audit')).text)
    t.strictSame(
      items.map(({ action }: { action: string }) => action),
      ['agent.register'],
    )
  }
})

t.test('a gateway that is cut off is fenced before the other answers, and serves again when it is back', async t => {
  const origin = await startOrigin(t)
  const settings = await createSchema(t)
  const url = new URL(settings.connectionString)
  const line = await startTcpProxy(t, Number(url.port))
  url.port = String(line.port)
  const cut = await startGateway(t, { config: quick({ ...settings, connectionString: url.href }) })
  const other = await startGateway(t, { config: quick(settings) })
  const [gone, kept] = [await cut.agent(), await cut.agent()]
  line.onSend = () => false
  line.answers = false
  t.equal(await revoke(other, gone.id), 200)
  t.match(await (await cut.proxy(gone.token, origin.url)).json(), { code: 'fenced' })
  t.equal((await other.proxy(kept.token, origin.url)).status, 200)
  line.onSend = () => true
  line.answers = true
  line.cut()
  await eventually(
    async () => (await cut.proxy(kept.token, origin.url)).status,
    status => status === 200,
  )
  t.equal((await cut.proxy(gone.token, origin.url)).status, 403)
  t.equal(await revoke(cut, kept.id), 200)
  t.equal((await other.proxy(kept.token, origin.url)).status, 403)
})
