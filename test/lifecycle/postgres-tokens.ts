/** `admin reset` beside gateways that run: every token is void in all of them, and in all of their threads. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { fetchDocumented } from '../fixtures/documented.ts'
import { onDatabase, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { readEvents } from '../fixtures/sse.ts'
import { testdir } from '../fixtures/testdir.ts'

t.test('tokens are void in every thread of every gateway once admin reset is done, and new ones work', async t => {
  const origin = await startOrigin(t)
  const config = onDatabase(await createSchema(t))
  const two = { config: { ...config, System: { Server: { Threads: 2 } } } }
  const gateways = [await startGateway(t, two), await startGateway(t, two)]
  const [first] = gateways
  const agent = await first!.agent()
  // Each call is a connection of its own: the threads take them in turn.
  const statuses = (one: TestGateway, token: string) =>
    Promise.all(
      Array.from({ length: 8 }, async () => {
        const answer = await one.proxy(token, origin.url, { headers: { Connection: 'close' } })
        await answer.text()
        return answer.status
      }),
    )
  for (const one of gateways) t.strictSame(new Set(await statuses(one, agent.token)), new Set([200]))

  const { token: reviewer } = await first!.agent({ roles: ['reviewer'] })
  const streams = await Promise.all(
    gateways.map(({ url }) => readEvents(t, `${url}/hitl/events`, { Authorization: `Bearer ${reviewer}` })),
  )
  for (const { response } of streams) t.equal(response.status, 200)

  const file = join(testdir(t), 'gateway.yaml')
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 })
  const shell = fakeShell(['admin', 'reset', '--config', file], {})
  t.equal(await runCommand(shell), 0, shell.complained.join())

  for (const one of gateways) {
    t.strictSame(new Set(await statuses(one, agent.token)), new Set([401]))
    t.equal((await one.manage('GET', '/agents', undefined, one.adminToken)).status, 401)
    t.equal((await one.manage('GET', '/agents')).status, 200, 'the admin logs in')
  }
  for (const stream of streams) t.equal(await stream.next(), undefined, 'streams that a void token opened end')
  const body = JSON.stringify({ agentId: agent.id, clientSecret: agent.clientSecret })
  const headers = { 'Content-Type': 'application/json' }
  const answer = await fetchDocumented(`${first!.url}/tokens`, { method: 'POST', headers, body })
  const { accessToken } = (await answer.json()) as { accessToken: string }
  for (const one of gateways) t.strictSame(new Set(await statuses(one, accessToken)), new Set([200]))
})
