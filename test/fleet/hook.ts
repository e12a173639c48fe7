/** The gateway that sends to a webhook dies. */
import { fault } from '../fixtures/fleet/fault.ts'
import { heldId } from '../fixtures/fleet/fleet.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import t from '../fixtures/tap.ts'

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
  t.same([...new Set(came)], ids, 'each at least once, in the order of the commits')
  t.equal(came.filter(id => id === ids[2]).length, 2, 'that which was not confirmed came again')
})
