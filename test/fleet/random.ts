import t from 'tap'
import { inCampaign } from '../fixtures/fleet/fault.ts'
import { startFleet } from '../fixtures/fleet/fleet.ts'
import { checkInvariants } from '../fixtures/fleet/invariants.ts'
import { runRandom } from '../fixtures/fleet/random.ts'

const { GATEWAY_TEST_SEED: seedGiven, GATEWAY_TEST_OPERATIONS: operationsGiven } = process.env
const seed = Number(seedGiven ?? Math.floor(Math.random() * 1_000_000))
const operations = Number(operationsGiven ?? (inCampaign ? 2_000 : 300))

t.test(`${operations} random operations with faults, seed ${seed}`, { timeout: 1_200_000 }, async t => {
  const fleet = await startFleet(t)
  const wrong = await runRandom(fleet, { seed, operations })
  t.strictSame(wrong, [], `every answer is explained: again with GATEWAY_TEST_SEED=${seed}`)
  await checkInvariants(t, fleet)
})
