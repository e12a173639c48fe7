/** A first turn that took too long ended the start with the trace of an error instead of one line. */
import { onDatabase, startBare } from '../fixtures/gateway.ts'
import { createSchema } from '../fixtures/postgres.ts'
import t from '../fixtures/tap.ts'
import { startTcpProxy } from '../fixtures/tcp-proxy.ts'

t.test('a start that cannot watch for changes is refused with one line', async t => {
  const settings = await createSchema(t)
  const url = new URL(settings.connectionString)
  const line = await startTcpProxy(t, Number(url.port))
  url.port = String(line.port)
  line.onSend = data => !data.includes('listen "agent_gateway')
  const config = { ...onDatabase({ ...settings, connectionString: url.href }), Fleet: { FenceAfterSeconds: 2 } }
  await t.rejects(startBare(t, { config }), {
    name: 'StartupError',
    message: 'The database failed during the start: A turn took too long',
  })
})
