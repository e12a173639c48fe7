/** Threat T31 of SECURITY.md: a body that drips holds nothing for good. */

import t from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const conditions = [{ field: 'input.body.kind', operator: 'eq', value: 'bad' }]
const reads = { name: 'reads', default: 'Allow', rules: [{ name: 'bad', effect: 'Deny', conditions }] }

for (const threads of [1, 2]) {
  t.test(`a body that drips is ended with 408, held or streamed, ${threads} threads`, async t => {
    const origin = await startOrigin(t, req => void req.resume())
    const clock = createClock(Date.now())
    const gateway = await startGateway(t, { clock, config: { System: { Server: { Threads: threads } } } })
    await gateway.policy(reads)
    for (const policyName of ['allow-all', 'reads']) {
      const { token } = await gateway.agent({ policyName })
      const client = await openRaw(t, gateway.port)
      const fields = `Host: g\r\nGateway-Authorization: Bearer ${token}\r\nContent-Type: application/json`
      client.write(`POST /proxy/${origin.url}/ HTTP/1.1\r\n${fields}\r\nContent-Length: 100000\r\n\r\n{`)
      await eventually(
        () => gateway.gateway.inFlight(),
        inFlight => inFlight === 1,
      )
      // A byte whenever the gateway has looked.
      const timer = setInterval(() => {
        client.write(' ')
        clock.advance(5_000)
      }, 50)
      t.teardown(() => clearInterval(timer))
      const answer = await client.closed()
      clearInterval(timer)
      t.match(answer, /^HTTP\/1\.1 408 /, policyName)
      t.match(answer, /Connection: close/i)
      t.match(answer, /Gateway-Error: request_timeout/)
      await eventually(
        () => gateway.gateway.inFlight(),
        inFlight => inFlight === 0,
      )
    }
    const told = () => gateway.log.filter(({ limit }) => limit === 'body_pace')
    t.equal((await eventually(told, ({ length }) => length === 2)).length, 2)
  })
}
