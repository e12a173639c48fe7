/** One gateway at a time on a schema: another one is refused, and one that was cut off and replaced stops. */
import { onDatabase, startBare, startGateway, testConfig } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'
import t from '../fixtures/tap.ts'
import { startTcpProxy } from '../fixtures/tcp-proxy.ts'

t.test('a second gateway on the schema is refused; the first one serves on', async t => {
  const config = onDatabase(await createSchema(t))
  const first = await startGateway(t, { config })
  await t.rejects(startBare(t, { config }), {
    name: 'StartupError',
    message: /^Another gateway \(on [^\n]+\) uses this schema[^\n]+$/,
  })
  t.equal((await first.manage('GET', '/agents')).status, 200)
  await first.close()
  await startGateway(t, { config })
})

t.test('one that is cut off serves no more when another one takes its place, and stops when it is back', async t => {
  const origin = await startOrigin(t)
  const settings = await createSchema(t)
  const url = new URL(settings.connectionString)
  const line = await startTcpProxy(t, Number(url.port))
  url.port = String(line.port)
  const first = await startGateway(t, { config: onDatabase({ ...settings, connectionString: url.href }) })
  const agent = await first.agent()
  t.equal((await first.proxy(agent.token, origin.url)).status, 200)
  line.onSend = () => false
  line.answers = false
  const second = await startGateway(t, { config: onDatabase(settings) })
  t.match(second.log, [{ message: /^waiting until the gateway on .+ cannot serve$/ }])
  t.equal((await first.proxy(agent.token, origin.url)).status, 503, 'fenced before the other one serves')
  t.equal((await second.manage('POST', `/agents/${agent.id}/revoke`)).status, 200)
  line.onSend = () => true
  line.answers = true
  line.cut()
  t.match(await first.gateway.lost, /has taken the database/)
  t.equal((await first.proxy(agent.token, origin.url)).status, 503)
  const { rows } = await settings.admin.query('select id from members')
  t.equal(rows.length, 1, 'it does not register again')
  t.equal((await second.proxy(agent.token, origin.url)).status, 403)
})

t.test('start is refused with one line and without the secret', async t => {
  const settings = await createSchema(t)
  const { password } = new URL(settings.connectionString)
  const wrong = Object.assign(new URL(settings.connectionString), { password: 'hunter22hunter22' }).href
  const cases: readonly [string, Record<string, unknown>, RegExp][] = [
    ['a wrong password', { ConnectionString: wrong }, /the user or the password is wrong/],
    ['a server without TLS', { Tls: 'VerifyFull' }, /has no TLS/],
    ['a missing CA file', { Tls: 'VerifyFull', CaFile: 'nowhere.pem' }, /CaFile: .*nowhere\.pem cannot be read/],
  ]
  for (const [name, change, message] of cases) {
    const { Storage, ...rest } = onDatabase(settings) as { Storage: { PostgreSQL: object } }
    const config = { ...rest, Storage: { ...Storage, PostgreSQL: { ...Storage.PostgreSQL, ...change } } }
    const error = await startBare(t, { config }).then(
      () => undefined,
      error => error,
    )
    t.match(error, { name: 'StartupError', message }, name)
    t.notMatch(error.message, /hunter22|\n/)
    t.notOk(error.message.includes(password))
  }
  const { Security: _, ...keyless } = onDatabase(settings)
  t.throws(() => testConfig(keyless), /TokenIssuance:Secret: must be set when Storage:Provider is PostgreSQL/)
  t.throws(() => testConfig({ Storage: { Provider: 'PostgreSQL' } }), /ConnectionString: must be set when/)
  const { Bootstrap: __, ...security } = onDatabase(settings)['Security'] as { Bootstrap: object }
  await t.rejects(startBare(t, { config: { ...onDatabase(settings), Security: security } }), {
    name: 'StartupError',
    message: /^Security:Bootstrap: AgentId and ClientSecret must be set[^\n]+$/,
  })
})
