/** What gateways on one database tell each other within seconds. */

import t from 'tap'
import { eventually, onDatabase, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'

const config = onDatabase(await createSchema(t))
for (const threads of [1, 2]) {
  t.test(`a rule that counts denials counts those of every gateway: ${threads} threads`, async t => {
    const origin = await startOrigin(t)
    const many = { field: 'agent.deniedLast10m', operator: 'gte', value: 3 }
    const writes = { field: 'input.method', operator: 'eq', value: 'POST' }
    const System = { Server: { Threads: threads }, RateLimit: { Burst: 100_000 } }
    const threaded = { ...config, System }
    const [one, other] = [await startGateway(t, { config: threaded }), await startGateway(t, { config: threaded })]
    const policyName = await one.policy({
      name: `careful-${threads}`,
      default: 'Allow',
      rules: [
        { name: 'writes', effect: 'Deny', conditions: [writes] },
        { name: 'many', effect: 'Deny', conditions: [many] },
      ],
    })
    const { id, token } = await one.agent({ policyName })
    for (let times = 0; times < 3; times++) {
      t.equal((await one.proxy(token, origin.url, { method: 'POST' })).status, 403)
    }
    const status = await eventually(
      async () => (await other.proxy(token, origin.url)).status,
      found => found === 403,
    )
    t.equal(status, 403)
    const { incidents } = JSON.parse((await other.manage('GET', `/agents/${id}/activity`)).text)
    t.equal(incidents.filter(({ rule }: { rule: string }) => rule === 'writes').length, 3)
    const { hits } = JSON.parse((await other.manage('GET', `/policies/${policyName}`)).text)
    t.match(
      hits.find(({ rule }: { rule: string }) => rule === 'writes'),
      { count: 3 },
    )
  })
}
