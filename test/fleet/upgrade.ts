/** Gateways of the next version replace the others, one after the other, while agents and people call. */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { fault } from '../fixtures/fleet/fault.ts'
import type { Fleet } from '../fixtures/fleet/fleet.ts'
import { makeCall, outcomes } from '../fixtures/fleet/ledger.ts'
import { startLoad } from '../fixtures/fleet/load.ts'
import type { Member } from '../fixtures/fleet/member.ts'
import { eventually } from '../fixtures/gateway.ts'
import { testdir } from '../fixtures/testdir.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const next = '99.0.0'
const step = `'0099-nickname': { up: db => sql\`alter table agents add column nickname text\`.execute(db).then(() => {}) },`

/** This version with a higher number and a step of the schema that only adds; its main file. */
function copyAsNext(t: Test): string {
  const folder = testdir(t)
  for (const name of ['src', 'openapi.json']) cpSync(join(root, name), join(folder, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const about = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...about, version: next }))
  const steps = join(folder, 'src/storage/postgres/steps.ts')
  writeFileSync(steps, readFileSync(steps, 'utf8').replace(`  own: {\n`, `  own: {\n    ${step}\n`))
  return join(folder, 'src/main.ts')
}

/** What a load balancer does: it asks each gateway whether it may be sent calls, and deals them to those that may. */
function startBalancing(t: Test, members: Fleet['members']) {
  const serving = new Set<Member>(members)
  let ended = false
  t.teardown(() => {
    ended = true
  })
  const watch = async (member: Member): Promise<void> => {
    while (!ended) {
      const asked = { method: 'GET', path: '/health/proxy', patience: 1_000 }
      const { status } = await makeCall(member, asked, { does: 'other' })
      if (status === 200) serving.add(member)
      else serving.delete(member)
      await sleep(50)
    }
  }
  for (const member of members) void watch(member)
  let dealt = 0
  return { serving, pick: (): Member => [...serving][dealt++ % serving.size]! }
}

const config = { System: { Server: { StopDelaySeconds: 2, DrainSeconds: 5 } } }

fault(25, 'the next version replaces one gateway after the other', { config }, async (t, fleet) => {
  const { a, members, db } = fleet
  const script = copyAsNext(t)
  const bot = await fleet.bot()
  const { serving, pick } = startBalancing(t, members)
  const reads = startLoad(() => fleet.get(pick(), bot), 2)
  const writes = startLoad(() => fleet.register(pick()), 1)
  const holds = startLoad(() => sleep(50).then(() => fleet.hold(pick(), bot)), 1)
  for (const member of members) {
    await writes.answered(10)
    member.script = script
    t.equal(await member.stop(), 0)
    serving.delete(member)
    await member.start()
    await eventually(() => serving.has(member), Boolean)
  }
  await writes.answered(10)
  t.strictSame(outcomes(await reads.end()), ['200'])
  t.strictSame(outcomes(await writes.end()), ['201'])
  t.strictSame(outcomes(await holds.end()), ['202'])
  const { text } = await fleet.manage(a, 'GET', '/fleet')
  const versions = (JSON.parse(text) as { members: { version: string }[] }).members.map(({ version }) => version)
  t.strictSame(versions, [next, next, next])
  const { rowCount } = await db.query('select nickname from agents limit 1')
  t.equal(rowCount, 1, 'the step was run beside gateways of before')
})
