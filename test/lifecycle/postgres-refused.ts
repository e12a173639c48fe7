import t from 'tap'
import { onDatabase, startBare, testConfig } from '../fixtures/gateway.ts'
import { createSchema } from '../fixtures/postgres.ts'

t.test('a start that cannot use the database is refused with one line and without the secret', async t => {
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
