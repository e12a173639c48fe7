/** A data folder of which one half is lost: the start says so instead of making a new half in silence. */
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startBare, startGateway } from '../fixtures/gateway.ts'
import { testdir } from '../fixtures/testdir.ts'

const onFiles = { Storage: { Provider: 'Sqlite' } }

async function dataAfterARun(t: Test) {
  const directory = testdir(t)
  await (await startGateway(t, { directory, config: onFiles })).close()
  return { directory, data: join(directory, 'data') }
}

t.test('a database without its signing.key is not started on', async t => {
  const { directory, data } = await dataAfterARun(t)
  rmSync(join(data, 'signing.key'))
  const lost = { name: 'StartupError', message: /signing\.key is missing.*Restore it from a backup.*openssl rand/ }
  await t.rejects(startBare(t, { directory, config: onFiles }), lost)
  t.notOk(existsSync(join(data, 'signing.key')))
  writeFileSync(join(data, 'signing.key'), 'q9Zr1vX4mK7wT2yB5nD8cF3gH6jL0pSa\n', { mode: 0o600 })
  t.ok(await startBare(t, { directory, config: onFiles }), 'the message says how to go on')
})

t.test('a data folder whose database is lost is not started on', async t => {
  const { directory, data } = await dataAfterARun(t)
  rmSync(join(data, 'gateway.db'))
  const lost = { name: 'StartupError', message: /gateway\.db is missing, but gateway\.mark.*remove gateway\.mark/ }
  await t.rejects(startBare(t, { directory, config: onFiles }), lost)
  t.notOk(existsSync(join(data, 'gateway.db')))
  rmSync(join(data, 'gateway.mark'))
  t.ok(await startBare(t, { directory, config: onFiles }), 'the message says how to go on')
})

t.test('a configured secret needs no signing.key', async t => {
  const config = {
    ...onFiles,
    Security: { AgentAuth: { TokenIssuance: { Secret: 'q9Zr1vX4mK7wT2yB5nD8cF3gH6jL0pSa' } } },
  }
  const directory = testdir(t)
  await (await startGateway(t, { directory, config })).close()
  t.notOk(existsSync(join(directory, 'data', 'signing.key')))
  t.ok(await startBare(t, { directory, config }))
})
