/** Threat T31 of SECURITY.md: names that nobody answers for, looked up by one agent, harm no other agent. */

import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { scrape } from '../fixtures/scrape.ts'

for (const threads of [1, 2]) {
  t.test(`an agent that asks for dead names delays no other and opens no circuit, ${threads} threads`, async t => {
    const origin = await startOrigin(t, (_req, res) => void res.end('ok'))
    const dead = new Set<string>()
    const gateway = await startGateway(t, {
      config: { System: { Server: { Threads: threads } } },
      lookup: async name => {
        if (name.startsWith('well')) return ['127.0.0.1']
        if (name.startsWith('gone')) throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
        dead.add(name)
        return new Promise(() => {})
      },
    })
    const [hostile, victim] = [await gateway.agent(), await gateway.agent()]
    const port = new URL(origin.url).port
    const leave = new AbortController()
    const calls = Array.from({ length: 60 }, (_, i) =>
      gateway.proxy(hostile.token, `http://dead${i}.example:${port}/`, { signal: leave.signal }).catch(() => {}),
    )
    await eventually(
      () => dead.size,
      size => size >= 32,
    )
    for (let i = 0; i < 20; i++) {
      const answer = await gateway.proxy(victim.token, `http://well${i}.example:${port}/`)
      t.equal(await answer.text(), 'ok')
    }
    // More failures than open a circuit, of a name that is found later.
    for (let i = 0; i < 8; i++) {
      const refused = await gateway.proxy(victim.token, `http://gone.example:${port}/`)
      t.equal(refused.headers.get('gateway-error'), 'upstream_failed')
    }
    leave.abort()
    await Promise.all(calls)
    const told = () => gateway.log.filter(({ failure }) => failure === 'name_not_found')
    const lines = await eventually(told, ({ length }) => length === 8)
    t.equal(lines.length, 8, 'the log says why')
    const page = scrape((await gateway.manage('GET', '/metrics')).text)
    t.equal(page.values.get('agent_gateway_upstream_failures_total{kind="name_not_found"}'), 8)
    t.equal(page.values.get('agent_gateway_circuits_open'), 0)
  })
}
