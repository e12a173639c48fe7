/** What an agent has under way in a gateway that is cut off, when the agent is revoked in another one. Threat T15. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fault } from '../fixtures/fleet/fault.ts'
import { fenceMs, heldId, leftOutMs } from '../fixtures/fleet/fleet.ts'
import { codeOf, tookOf } from '../fixtures/fleet/ledger.ts'
import { until } from '../fixtures/fleet/load.ts'
import { goOn, startTransfers, type Transfer } from '../fixtures/fleet/transfers.ts'
import { eventually } from '../fixtures/gateway.ts'
import { readEvents } from '../fixtures/sse.ts'

/** Longest time that a byte may be on its way between two sockets of this machine, milliseconds. */
const onItsWayMs = 20

/** How long after `moment` its last byte passed, and its connection was closed, milliseconds. */
const late = ({ what, lastAt, endedAt = Number.POSITIVE_INFINITY }: Transfer, moment: number) => ({
  ...{ what, byte: Math.max(0, lastAt - moment - onItsWayMs), end: Math.max(0, endedAt - moment - onItsWayMs) },
})
const never = (all: readonly Transfer[]) => all.map(({ what }) => ({ what, byte: 0, end: 0 }))
const config = { Proxy: { AllowUpgrade: ['127.0.0.1'] } }

for (const threads of [1, 2]) {
  const title = (what: string) => `${what}, with ${threads} ${threads === 1 ? 'thread' : 'threads'}`

  fault(
    26,
    title('transfers, waits and streams in a gateway that is cut off'),
    { threads, config },
    async (t, fleet) => {
      const { a, b } = fleet
      const bot = await fleet.bot()
      const reviewer = await fleet.reviewer()
      const { all } = await startTransfers(t, a, bot)
      const cut = performance.now()
      a.line.blackHole()
      await until(cut + fenceMs / 2)
      await goOn(all)
      t.ok(performance.now() - cut > fenceMs / 2)
      a.line.heal()
      a.line.cut()
      await until(cut + 2 * fenceMs)
      await goOn(all)
      t.strictSame(
        all.filter(({ endedAt }) => endedAt !== undefined),
        [],
        'a cut that is shorter than the fence ends nothing',
      )
      const events = await readEvents(t, `${a.url}/hitl/events`, { Authorization: `Bearer ${reviewer.token}` })
      await events.block()
      const waiting = fleet.hold(a, bot, { headers: { Prefer: 'wait=60' } })
      const id = (await events.next())!.data.hitlId
      await goOn(all)
      a.line.blackHole()
      const revoked = await fleet.revoke(b, bot)
      t.equal(revoked.status, 200)
      t.ok(tookOf(revoked) <= fleet.within(leftOutMs + 200), `answered after ${tookOf(revoked)} ms`)
      const waited = await waiting
      t.strictSame([waited.status, heldId(waited)], [202, id], 'its request stays held')
      t.ok(waited.ended <= revoked.ended + onItsWayMs, 'the wait has ended too')
      t.equal(await events.next(), undefined)
      await until(revoked.ended + 500)
      t.strictSame(
        all.map(one => late(one, revoked.ended)),
        never(all),
        'no byte passes after the revocation was answered',
      )
      t.equal(codeOf(await fleet.get(a, bot)), 'fenced')
      await eventually(() => a.log().match(/requests under way were ended/), Boolean)
    },
  )

  fault(27, title('transfers in a gateway that stops for 2 L'), { threads, config }, async (t, fleet) => {
    const { a, b } = fleet
    const bot = await fleet.bot()
    const { all } = await startTransfers(t, a, bot)
    a.pause()
    const revoked = await fleet.revoke(b, bot)
    t.equal(revoked.status, 200)
    await until(revoked.begun + 2 * fenceMs)
    const before = all.map(({ what, bytes }) => ({ what, bytes }))
    a.resume()
    await eventually(
      () => all.every(({ endedAt }) => endedAt !== undefined),
      isDone => isDone,
    )
    t.strictSame(
      all.map(({ what, bytes }) => ({ what, bytes })),
      before,
      'not a byte of what piled up meanwhile passes',
    )
  })
}

const folder = mkdtempSync(join(tmpdir(), 'gateway-skew-'))
const file = join(folder, 'skew')
const preload = new URL('../fixtures/fleet/skewed-clock.ts', import.meta.url).href
const node = { A: [`--import=${preload}?${encodeURIComponent(file)}`] }

fault(28, 'the wall clock of a gateway with transfers jumps ahead', { config, node }, async (t, fleet) => {
  t.teardown(() => rmSync(folder, { recursive: true }))
  const { a } = fleet
  const bot = await fleet.bot()
  const { all, speak } = await startTransfers(t, a, bot)
  const silent = all.find(({ what }) => what === 'silent download')!
  writeFileSync(file, String(3_600_000))
  await eventually(
    () => fleet.get(a, bot),
    call => codeOf(call) === 'fenced',
  )
  // The gateway has not noticed yet that this download must end.
  const before = silent.bytes
  speak()
  await eventually(
    () => all.every(({ endedAt }) => endedAt !== undefined),
    isDone => isDone,
  )
  t.equal(silent.bytes, before, 'it is asked before each byte whether the gateway is fenced')
})
