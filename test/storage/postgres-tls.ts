import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import type { PostgresSettings } from '../../src/storage/postgres/settings.ts'
import { startPostgres } from '../fixtures/postgres.ts'

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url))
/** Its certificate names 127.0.0.1 and localhost, and is its own authority. */
const server = await startPostgres({ certificate: 'renewed-' })
t.teardown(() => server.stop())
const settings: PostgresSettings = {
  ...{ connectionString: server.url, schema: 'agent_gateway', tls: 'VerifyFull', poolSize: 2 },
  caFile: fixture('renewed-cert.pem'),
}

t.test('calls and notifications go over TLS to a server whose certificate is trusted and names the host', async t => {
  const store = await openPostgresStore({ settings })
  t.teardown(() => store.close())
  t.strictSame(await store.agents.all(), [])
  const url = new URL(server.url)
  url.hostname = 'localhost'
  const byName = await openPostgresStore({ settings: { ...settings, connectionString: url.href } })
  await byName.close()
})

t.test('a certificate that is not trusted is refused', async t => {
  const refused = { name: 'StartupError', message: /its certificate is not trusted/ }
  await t.rejects(openPostgresStore({ settings: { ...settings, caFile: undefined } }), refused)
  await t.rejects(openPostgresStore({ settings: { ...settings, caFile: fixture('cert.pem') } }), refused)
})

t.test('a trusted certificate for another host is refused', async t => {
  const url = new URL(server.url)
  url.hostname = '127.0.0.2'
  await t.rejects(openPostgresStore({ settings: { ...settings, connectionString: url.href } }), {
    name: 'StartupError',
    message: /certificate is for another host name/,
  })
})
