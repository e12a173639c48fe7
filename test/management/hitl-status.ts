/** Threat T34 of SECURITY.md. */

import t from 'tap'
import { startControl } from '../fixtures/control.ts'

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

t.test(
  'reviewers are given the exact bytes, digests of the parts, and places of findings; the agent its bytes alone',
  async t => {
    const { call, person, suspend } = control
    const bot = await person('agent')
    const reviewer = await person('reviewer')
    const id = await suspend(bot.agent)
    const read = async (token: string) =>
      (await call('GET', `/hitl/${id}?bodyEncoding=base64`, { token })).json['pending'] as Record<string, unknown>
    const body = Buffer.from('{"amount":250}').toString('base64')
    t.match(await read(reviewer.token), {
      body,
      bodyEncoding: 'base64',
      digests: { query: /^[0-9a-f]{64}$/, fields: /^[0-9a-f]{64}$/, body: /^[0-9a-f]{64}$/ },
      findings: {},
      findingPlaces: [],
    })
    const own = await read(bot.token)
    t.match(own, { body, bodyEncoding: 'base64' })
    for (const name of ['digests', 'findings', 'findingPlaces']) t.notOk(name in own, name)
    t.match(await call('GET', `/hitl/${id}?bodyEncoding=hex`, { token: bot.token }), { status: 400 })
  },
)
