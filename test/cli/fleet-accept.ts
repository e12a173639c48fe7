/** Gateways that have stopped because the database lost history, and the command with which they go on. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { fetchDocumented } from '../fixtures/documented.ts'
import { eventually, onDatabase, startGateway, type TestAgent, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { copyTables } from '../fixtures/postgres-faults.ts'
import { runMain } from '../fixtures/process.ts'
import { testdir } from '../fixtures/testdir.ts'

async function logIn({ url }: TestGateway, { id: agentId, clientSecret }: TestAgent): Promise<string> {
  const headers = { 'Content-Type': 'application/json' }
  const body = JSON.stringify({ agentId, clientSecret })
  const answer = await fetchDocumented(`${url}/tokens`, { method: 'POST', headers, body })
  return ((await answer.json()) as { accessToken: string }).accessToken
}

t.test('all gateways stop when history is lost, and serve again once a command has accepted that', async t => {
  const origin = await startOrigin(t)
  const settings = await createSchema(t)
  const config = onDatabase(settings)
  const gateways = [await startGateway(t, { config }), await startGateway(t, { config })]
  const [first] = gateways
  const agent = await first!.agent()
  const putBack = await copyTables(settings.admin)
  await first!.agent()
  await putBack()
  const status = async (one: TestGateway, token: string) => (await one.proxy(token, origin.url)).status
  for (const one of gateways) {
    await eventually(
      () => status(one, agent.token),
      code => code === 503,
    )
    t.match(await (await one.proxy(agent.token, origin.url)).json(), { code: 'fenced' })
    t.match(await one.manage('GET', '/agents'), { status: 503, text: /"fenced"/ })
  }
  const cwd = testdir(t)
  writeFileSync(join(cwd, 'gateway.yaml'), JSON.stringify(config), { mode: 0o600 })
  const { ended, out } = runMain(t, ['fleet', 'accept'], { cwd })
  t.equal(await ended, 0)
  t.match(out(), /all tokens are void/)
  for (const one of gateways) {
    await eventually(
      () => status(one, agent.token),
      code => code !== 503,
    )
    t.equal(await status(one, agent.token), 401, 'a token from before is void')
    t.equal(await status(one, await logIn(one, agent)), 200)
    t.match(
      one.log.filter(({ message }) => /lost history|loss of history/.test(message)).map(({ level }) => level),
      ['error', 'warn'],
    )
  }
})
