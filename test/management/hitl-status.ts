/** Threat T34 of SECURITY.md. */

import { startControl } from '../fixtures/control.ts'
import t from '../fixtures/tap.ts'

const control = await startControl(t)

for (const [path, member] of [
  ['/hitl/status/', 'request'],
  ['/hitl/', 'pending'],
] as const) {
  t.test(`${path}{id} shows the request to its agent and to reviewers, and to no one else`, async t => {
    const { call, person, suspend } = control
    const bot = await person('agent')
    const other = await person('agent')
    const id = await suspend(bot.agent)
    const shown = {
      status: 200,
      json: { id, status: 'Pending', [member]: { id, method: 'POST', headers: {}, body: '{"amount":250}' } },
    }
    t.match(await call('GET', path + id, { token: bot.token }), shown)
    for (const role of ['reviewer', 'auditor', 'admin'] as const)
      t.match(await call('GET', path + id, { token: (await person(role)).token }), shown, role)
    t.match(await call('GET', path + id, { token: other.token }), { status: 404, json: { code: 'not_found' } })
    t.match(await call('GET', path + id), { status: 401 })
  })

  t.test(`${path}{id} is 404 for what is not there, or not any more`, async t => {
    const { call, person, suspend, clock, tokenOf } = control
    const reviewer = await person('reviewer')
    const id = await suspend((await person('agent')).agent)
    for (const unknown of ['1', '..%2fagents', '%2e%2e%2fagents', '__proto__', 'x'.repeat(500)])
      t.match((await call('GET', path + unknown, { token: reviewer.token })).status, 404, unknown)
    clock.advance(3_600_000)
    t.match(await call('GET', path + id, { token: await tokenOf(reviewer.agent) }), { status: 404 })
  })
}
