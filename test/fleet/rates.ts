/** The rate of an agent that calls all gateways, while they come and go. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fault, inCampaign } from '../fixtures/fleet/fault.ts'
import { fenceMs } from '../fixtures/fleet/fleet.ts'
import { startLoad } from '../fixtures/fleet/load.ts'

const [burst, perSecond] = [40, 20]
/** In each gateway: several, so that the load is little less when a call takes long. */
const callers = 4
/** Each of these three times lasts so long, milliseconds. */
const partMs = inCampaign ? 12_000 : 4_000
const config = { System: { RateLimit: { RequestsPerMinute: perSecond * 60, Burst: burst } } }

fault(22, 'three times the rate over three gateways, one is killed, one is cut off', { config }, async (t, fleet) => {
  const { a, b, c, members, upstream } = fleet
  const bot = await fleet.bot()
  const begun = performance.now()
  const loads = members.map(member =>
    startLoad(async () => {
      await sleep((callers * 1_000) / perSecond)
      return fleet.get(member, bot)
    }, callers),
  )
  /** Requests that passed until now, and the seconds since the beginning. */
  const admitted = () => ({
    count: upstream.sent.filter(({ agent }) => agent === bot.id).length,
    seconds: (performance.now() - begun) / 1_000,
  })
  /** One of each gateway passes before it has tokens. */
  const most = (seconds: number, gateways = 3) => burst + perSecond * seconds + gateways
  await sleep(partMs)
  await c.kill()
  await sleep(partMs)
  const whole = admitted()
  t.ok(whole.count <= most(whole.seconds), `${whole.count} of ${most(whole.seconds)} with the database`)
  b.line.blackHole()
  await sleep(partMs)
  const { count, seconds } = admitted()
  // Until it is fenced, the one that is cut off has a share of its own.
  const share = (burst + (perSecond * fenceMs) / 1_000) / 2
  t.ok(count <= most(seconds) + share, `${count} of ${most(seconds) + share} in all`)
  t.ok(count >= 0.9 * perSecond * seconds, `${count} in ${seconds} s`)
  t.ok(a.isRunning)
  await Promise.all(loads.map(load => load.end()))
})
