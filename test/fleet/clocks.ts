/** Gateways whose wall clocks are wrong. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fault } from '../fixtures/fleet/fault.ts'
import { heldId } from '../fixtures/fleet/fleet.ts'
import { outcomes } from '../fixtures/fleet/ledger.ts'
import { startLoad } from '../fixtures/fleet/load.ts'

const hourMs = 3_600_000
const preload = new URL('../fixtures/fleet/skewed-clock.ts', import.meta.url).href
/** Within this, milliseconds, the audit trail tells the time; round trips and a busy machine count. */
const trueMs = 5_000

for (const hours of [1, -1]) {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-skew-'))
  const file = join(folder, 'skew')
  const setup = { node: { A: [`--import=${preload}?${encodeURIComponent(file)}`] } }
  fault(21, `the clock of a gateway jumps by ${hours} h`, setup, async (t, fleet) => {
    const { a, b, db, upstream } = fleet
    t.teardown(() => rmSync(folder, { recursive: true }))
    const bot = await fleet.bot()
    const reads = startLoad(() => fleet.get(a, bot))
    const waits = heldId(await fleet.hold(b, bot))
    const leaves = heldId(await fleet.hold(b, bot))
    const release = Promise.withResolvers<void>()
    upstream.before = ({ method }) => method === 'POST' && release.promise
    const sending = fleet.approve(b, leaves)
    writeFileSync(file, String(hours * hourMs))
    // Sweeps of A: what B sends must not lapse, and what waits must not expire.
    await sleep(2_200)
    release.resolve()
    t.equal((await sending).status, 200)
    t.equal((await fleet.approve(a, waits)).status, 200)
    t.strictSame([fleet.sendingsOf(waits).length, fleet.sendingsOf(leaves).length], [1, 1])
    const { rows } = await db.query('select seq, at, action from audit')
    t.strictSame(
      rows.filter(({ at }) => Math.abs(Number(at) - Date.now()) > 60_000 + trueMs),
      [],
    )
    await reads.succeeds(performance.now())
    // The fence goes by the wall clock too: it may fall for two turns.
    const found = outcomes(await reads.end())
    t.strictSame(
      found.filter(outcome => !['200', '503 fenced'].includes(outcome)),
      [],
    )
  })
}
