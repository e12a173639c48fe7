/** Verdicts on held requests while gateways die, stop or compete: each request is sent once at most. */
import { fault, inCampaign } from '../fixtures/fleet/fault.ts'
import { type Fleet, fenceMs, heldId } from '../fixtures/fleet/fleet.ts'

import type { Call } from '../fixtures/fleet/ledger.ts'
import { until } from '../fixtures/fleet/load.ts'
import { atCommit } from '../fixtures/fleet/member.ts'
import { eventually } from '../fixtures/gateway.ts'

async function holdOne(fleet: Fleet, method = 'POST'): Promise<string> {
  const bot = await fleet.bot()
  const held = await eventually(
    () => fleet.hold(fleet.c, bot, { method }),
    ({ status }) => status === 202,
  )
  return heldId(held)
}

/** Status and state of the replay. */
async function stateOf({ db }: Fleet, id: string): Promise<string> {
  const { rows } = await db.query('select status, replay from hitl where id = $1', [id])
  return `${rows[0].status} ${rows[0].replay}`
}

const becomes = (fleet: Fleet, id: string, state: string) =>
  eventually(
    () => stateOf(fleet, id),
    now => now === state,
  )

fault(1, 'the approver is killed before its COMMIT', {}, async (t, fleet) => {
  const { a, b } = fleet
  const id = await holdOne(fleet)
  atCommit(a, { of: 'hitl.approve', passes: false }, () => void a.kill())
  t.equal((await fleet.approve(a, id)).status, 0)
  a.line.cut()
  t.equal(await becomes(fleet, id, 'Pending null'), 'Pending null')
  t.equal(fleet.sendingsOf(id).length, 0)
  t.equal((await fleet.approve(b, id)).status, 200)
  t.equal(fleet.sendingsOf(id).length, 1)
})

fault(2, 'the approver is killed after its COMMIT, before it sends', { long: true }, async (t, fleet) => {
  const { a, b } = fleet
  const id = await holdOne(fleet)
  atCommit(a, { of: 'hitl.approve', passes: true }, () => void a.kill())
  t.equal((await fleet.approve(a, id)).status, 0)
  t.equal(await becomes(fleet, id, 'Approved unknown'), 'Approved unknown')
  t.equal((await fleet.approve(b, id)).status, 409)
  t.equal(fleet.sendingsOf(id).length, 0)
  t.equal((await fleet.approve(b, id, { resend: true })).status, 200)
  t.equal(fleet.sendingsOf(id).length, 1)
})

fault(3, 'the approver is killed once the upstream has the request', { long: true }, async (t, fleet) => {
  const { a, b, upstream } = fleet
  const id = await holdOne(fleet)
  upstream.before = () => a.kill()
  t.equal((await fleet.approve(a, id)).status, 0)
  upstream.before = () => {}
  t.equal(await becomes(fleet, id, 'Approved unknown'), 'Approved unknown')
  t.equal((await fleet.approve(b, id)).status, 409)
  await until(performance.now() + 3_000)
  t.equal(fleet.sendingsOf(id).length, 1, 'it is not sent again by itself')
  t.equal((await fleet.approve(b, id, { resend: true })).status, 200)
  t.equal(fleet.sendingsOf(id).length, 2)
})

const [items, approvals] = inCampaign ? [200, 50] : [20, 6]

fault(4, `${approvals} approvals of each of ${items} requests, and a gateway is killed`, {}, async (t, fleet) => {
  const { a, members } = fleet
  const bot = await fleet.bot()
  const ids: string[] = []
  for (let n = 0; n < items; n++) ids.push(heldId(await fleet.hold(members[n % 3]!, bot)))
  const calls: Call[] = []
  // All approvals of one request at a time: more of them only make the gateways slow, and fence them.
  for (const [index, held] of ids.entries()) {
    const made = Array.from({ length: approvals }, (_, n) => fleet.approve(members[n % 3]!, held))
    if (index === items / 2) await a.kill()
    calls.push(...(await Promise.all(made)))
  }
  for (const id of ids) {
    const sent = fleet.sendingsOf(id).length
    const found = calls.filter(({ held }) => held === id).map(({ status }) => status)
    const others = found.filter(status => ![200, 409, 503, 0].includes(status))
    const done = found.filter(status => status === 200).length
    if (sent > 1 || done > sent || others.length > 0) t.fail(`${id} was sent ${sent} times: ${found}`)
  }
  const done = calls.filter(({ status }) => status === 200).length
  t.ok(done > items / 2, `${done} of ${items} were approved`)
})

fault(5, 'approval and denial, and two approvals, at the same time in two gateways', {}, async (t, fleet) => {
  const { a, b } = fleet
  const [one, other] = [await fleet.reviewer(), await fleet.reviewer()]
  const seen = { approved: 0, denied: 0 }
  for (let round = 0; round < 10; round++) {
    const id = await holdOne(fleet)
    const [approved, denied] = await Promise.all([fleet.approve(a, id), fleet.deny(b, id)])
    const statuses = [approved.status, denied.status]
    t.strictSame(statuses.toSorted(), [200, 409])
    t.equal(fleet.sendingsOf(id).length, approved.status === 200 ? 1 : 0)
    seen[approved.status === 200 ? 'approved' : 'denied'] += 1
    const twice = await holdOne(fleet, 'PUT')
    const votes = [one, other].flatMap(by => [fleet.approve(a, twice, { by }), fleet.approve(b, twice, { by })])
    const found = (await Promise.all(votes)).map(({ status }) => status)
    t.equal(found.filter(status => status === 200).length, 1, `${found}`)
    t.equal(fleet.sendingsOf(twice).length, 1)
  }
  t.comment(`${seen.approved} approved, ${seen.denied} denied`)
})

// With the longer fence only the lease keeps it from sending.
for (const seconds of [fenceMs / 1_000, 20]) {
  const setup = { long: true, config: { Fleet: { FenceAfterSeconds: seconds } } }
  fault(
    8,
    `the approver stops between claim and sending, past the lease, with L = ${seconds} s`,
    setup,
    async (t, fleet) => {
      const { a, b } = fleet
      const id = await holdOne(fleet)
      atCommit(a, { of: 'hitl.approve', passes: true }, a.pause)
      const late = fleet.approve(a, id)
      t.equal(await becomes(fleet, id, 'Approved unknown'), 'Approved unknown')
      a.resume()
      t.ok((await late).status >= 500)
      await until(performance.now() + 1_000)
      t.equal(fleet.sendingsOf(id).length, 0)
      // It may have been able to say that it sent nothing.
      const resend = (await stateOf(fleet, id)) !== 'Pending null'
      t.equal((await fleet.approve(b, id, { resend })).status, 200)
      t.equal(fleet.sendingsOf(id).length, 1)
    },
  )
}
