/**
 * Suspends, approves and denies without end, and tells of each only when it was acknowledged. What reaches the
 * upstream goes to a file of its own. Arguments: data folder, upstream's file.
 */
import { appendFileSync, writeSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { isRefusal } from '../../../src/base/refusals.ts'
import { answered, openDesk, suspended, verdict } from '../../fixtures/hitl.ts'

const [directory, upstream] = process.argv.slice(2) as [string, string]
const desk = await openDesk({
  directory,
  alone: 'its files are those of SQLite',
  settings: { MaxPendingRequests: 1_000_000 },
  answer: async (_, { hitlId }) => {
    appendFileSync(upstream, `${hitlId}\n`)
    return answered('done')
  },
})

const tell = (what: string, id: string) => writeSync(1, `${what} ${id}\n`)

async function lane(): Promise<never> {
  for (;;) {
    const [left, denied, approved] = [await suspended(desk), await suspended(desk), await suspended(desk)]
    for (const id of [left, denied, approved]) tell('Pending', id)
    await desk.queue.deny(denied, verdict())
    tell('Denied', denied)
    const answer = await desk.queue.approve(approved, verdict())
    if (!isRefusal(answer) && 'body' in answer) await text(answer.body)
    tell('Approved', approved)
  }
}

await Promise.all([lane(), lane(), lane(), lane()])
