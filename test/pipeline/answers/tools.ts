/** Whether a body asks for the tools of a server is found out in turns; the body stays in memory meanwhile. */

import t from 'tap'
import { toolReader } from '../../../src/pipeline/answers/tools.ts'
import type { Sendable } from '../../../src/pipeline/exchange.ts'
import type { ReaderParts } from '../../../src/pipeline/parts.ts'
import { createWorkTurns } from '../../../src/pipeline/work-turns.ts'

/** Rounds of the event loop that the test makes; the turns of the first one are taken. */
function busyTurns() {
  const rounds: (() => void)[] = []
  const workTurns = createWorkTurns(work => rounds.push(work))
  workTurns.spend(Number.MAX_SAFE_INTEGER)
  const round = async () => {
    rounds.shift()?.()
    for (let tick = 0; tick < 5; tick++) await Promise.resolve()
  }
  return { workTurns, round }
}

const long = Buffer.from(JSON.stringify({ text: 'x'.repeat(1_000_000), method: 'tools/list' }))

function asking(workTurns: ReaderParts['workTurns'], isOver: () => boolean) {
  const exchange = {
    ...{ method: 'POST', hasBody: true, body: long, agent: { id: 'a' }, fields: {}, rawHeaders: [] },
    get isOver() {
      return isOver()
    },
  }
  const parts = { workTurns } as unknown as ReaderParts
  return toolReader(parts).interestIn(exchange as unknown as Sendable)
}

t.test('a body that was decided on comes before those of its agent that wait for a decision', async t => {
  const { workTurns, round } = busyTurns()
  let decided = 0
  const waiting = [1, 2, 3].map(() => workTurns.next('a').then(() => decided++))
  let isFound = false
  const asked = Promise.resolve(asking(workTurns, () => false)).then(() => {
    isFound = true
  })
  for (let count = 0; !isFound && count < 100; count++) await round()
  t.ok(isFound)
  // The last turn of the question leaves time for one of them.
  t.ok(decided <= 1, String(decided))
  for (let count = 0; count < 3; count++) await round()
  await Promise.all([asked, ...waiting])
})

t.test('the body of an exchange that is over is not read any more', async t => {
  const { workTurns, round } = busyTurns()
  let spent = 0
  const counted = { ...workTurns, hasCapacity: false, spend: () => void spent++ }
  const asked = asking(counted, () => true)
  await round()
  await asked
  t.equal(spent, 0)
})
