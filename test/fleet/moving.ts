/** Gateways that come and go, and callers that move from one to another. */

import t from 'tap'
import { fault } from '../fixtures/fleet/fault.ts'
import { type Bot, heldId } from '../fixtures/fleet/fleet.ts'
import { outcomes } from '../fixtures/fleet/ledger.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { readEvents, type ServerEvent } from '../fixtures/sse.ts'

/** Time in which a verdict in one gateway wakes a call that waits in another, milliseconds. */
const wakeMs = 100

fault(24, 'a call waits in A, a stream moves from C to A, and B decides', {}, async (t, fleet) => {
  const { a, b, c } = fleet
  const bot = await fleet.bot()
  const reviewer = await fleet.reviewer()
  const headers = { Authorization: `Bearer ${reviewer.token}` }
  const first = await readEvents(t, `${c.url}/hitl/events`, headers)
  const ids: string[] = []
  for (let n = 0; n < 4; n++) ids.push(heldId(await fleet.hold(b, bot)))
  const events: (ServerEvent | undefined)[] = [await first.next(), await first.next()]
  await c.kill()
  const second = await readEvents(t, `${a.url}/hitl/events`, { ...headers, 'Last-Event-ID': first.lastId() })
  events.push(await second.next(), await second.next())
  t.strictSame(
    events.map(event => [event?.event, event?.data.hitlId]),
    ids.map(id => ['pending', id]),
  )
  const waiting = fleet.hold(a, bot, { headers: { Prefer: 'wait=20' } })
  const { hitlId: id } = (await second.next())!.data
  fleet.within(0)
  const approved = await fleet.approve(b, id)
  const woken = await waiting
  t.strictSame([approved.status, woken.status, heldId(woken)], [200, 200, id])
  t.ok(woken.ended - approved.ended <= fleet.within(wakeMs), `woken after ${woken.ended - approved.ended} ms`)
  t.strictSame(
    [await second.next(), await second.next()].map(event => [event?.event, event?.data.hitlId]),
    [
      ['approved', id],
      ['completed', id],
    ],
  )
  await second.close()
})

fault(25, 'a gateway joins while agents are revoked', {}, async (t, fleet) => {
  const { b, c, db } = fleet
  const { rows } = await db.query(`select count(*)::int as admins from agents where roles like '%admin%'`)
  t.equal(rows[0].admins, 1, 'three first starts at once made one admin')
  const bots: Bot[] = []
  for (let n = 0; n < 20; n++) bots.push(await fleet.bot())
  t.equal(await c.stop(), 0)
  let joined = false
  const joining = c.start().then(() => {
    joined = true
  })
  const revoked: Bot[] = []
  for (const bot of bots) {
    t.equal((await fleet.revoke(b, bot)).status, 200)
    revoked.push(bot)
    if (!joined) await eventually(() => joined, Boolean)
    const calls = await Promise.all(revoked.map(one => fleet.get(c, one)))
    t.strictSame(outcomes(calls), ['403 agent_revoked'])
  }
  await joining
})

const came: string[] = []
let isSilent = false
const hook = await startOrigin(t, (req, res, seen) => {
  req.on('end', () =>
    setImmediate(() => {
      came.push(JSON.parse(seen.body.toString()).hitlId)
      if (!isSilent) res.writeHead(204).end()
    }),
  )
})
const has = (id: string) =>
  eventually(
    () => came.includes(id),
    found => found,
  )

// The others wait until the lease on the hook ends, 30 s.
const setup = { long: true, config: { HumanInTheLoop: { Webhooks: [{ Url: hook.url }] } } }

fault(24, 'the gateway that sends to a webhook is killed', setup, async (t, fleet) => {
  const { a, b, c, db, members } = fleet
  const bot = await fleet.bot()
  const ids = [heldId(await fleet.hold(a, bot)), heldId(await fleet.hold(b, bot))]
  for (const id of ids) await has(id)
  const { rows } = await db.query('select name from hooks join members on id = owner::uuid')
  const owner = members.find(({ name }) => name === rows[0]?.name) ?? c
  isSilent = true
  const others = members.filter(member => member !== owner)
  ids.push(heldId(await fleet.hold(others[0]!, bot)))
  await has(ids[2]!)
  await owner.kill()
  isSilent = false
  for (const member of others) ids.push(heldId(await fleet.hold(member, bot)))
  await has(ids.at(-1)!)
  t.strictSame([...new Set(came)], ids, 'each at least once, in the order of the commits')
  t.equal(came.filter(id => id === ids[2]).length, 2, 'that which was not confirmed came again')
})
