/** Threat T12 of SECURITY.md, over several gateways. */

import t, { type Test } from 'tap'
import { merge, onDatabase, startGateway, type TestGateway, type Tree } from '../fixtures/gateway.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { startTcpProxy } from '../fixtures/tcp-proxy.ts'

const perAgent = 5

/** Two gateways; how many calls about logins of agents the second one made to the database. */
async function start(t: Test, more: Tree = {}) {
  const settings = await createSchema(t)
  const url = new URL(settings.connectionString)
  const line = await startTcpProxy(t, Number(url.port))
  url.port = String(line.port)
  const TokenRequests = { PerAgentPerMinute: perAgent, PerAddressPerMinute: 1_000, BcryptCost: 4 }
  const config = merge(more, { Security: { AgentAuth: { TokenRequests } } })
  const first = await startGateway(t, { config: merge(onDatabase(settings), config) })
  const behind = onDatabase({ ...settings, connectionString: url.href })
  const second = await startGateway(t, { config: merge(behind, config) })
  let asked = 0
  line.onSend = data => {
    if (data.includes('login agent')) asked += 1
    return true
  }
  return { first, second, asked: () => asked }
}

const login = async (gateway: TestGateway, agentId: string, clientSecret: string) =>
  (await gateway.manage('POST', '/tokens', { agentId, clientSecret }, null)).status

t.test('guesses at two gateways count together, and one gateway does not ask the database about each', async t => {
  const { first, second, asked } = await start(t)
  const { id, clientSecret } = await first.agent()
  const begun = performance.now()
  const guesses = await Promise.all(
    Array.from({ length: 100 }, (_, n) => login(n % 2 === 0 ? first : second, id, `guess ${n}`)),
  )
  const gained = Math.ceil(((performance.now() - begun) / 60_000) * perAgent)
  t.ok(guesses.filter(status => status === 401).length <= perAgent + gained)
  t.strictSame(new Set(guesses), new Set([401, 429]))
  const late: number[] = []
  for (let n = 0; n < 20; n++) late.push(await login(second, id, n === 7 ? clientSecret : `late ${n}`))
  // On a busy machine a token is gained meanwhile: one in 12 s.
  const seconds = (performance.now() - begun) / 1_000
  t.ok(late.filter(status => status !== 429).length <= Math.floor((seconds / 60) * perAgent), String(late))
  // One call for all, one for tokens given back, and more only for a token that was gained, or an answer that came late.
  t.ok(asked() <= 6 + seconds, `asked ${asked()} times in ${seconds} s`)
  t.equal(await login(second, (await first.agent()).id, 'x'), 401, 'another agent is not slowed down')
})

t.test('logins that succeed leave room for others', async t => {
  const { first, second } = await start(t)
  const { id, clientSecret } = await first.agent()
  for (let n = 0; n < 4 * perAgent; n++) t.equal(await login(n % 2 === 0 ? first : second, id, clientSecret), 200)
})

t.test('with PerGateway each gateway counts by itself', async t => {
  const { first, second, asked } = await start(t, { Fleet: { RateLimits: 'PerGateway' } })
  const { id } = await first.agent()
  for (const gateway of [first, second]) {
    for (let n = 0; n < perAgent; n++) t.equal(await login(gateway, id, `guess ${n}`), 401)
    t.equal(await login(gateway, id, 'one more'), 429)
  }
  t.equal(asked(), 0)
})
