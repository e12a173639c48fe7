/** Threat T07 of SECURITY.md. */
import { readFileSync, writeFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { openDesk, reviewer, verdict } from '../fixtures/hitl.ts'
import { linesUntilKilled } from '../fixtures/process.ts'
import { runs } from '../fixtures/runs.ts'
import { testdir } from '../fixtures/testdir.ts'

const alone = 'one process after the other holds the files of SQLite'
const child = new URL('./child/reviewer.ts', import.meta.url).pathname
const lives = runs(50)
const lease = 150_000

t.test(`a process killed ${lives} times loses no suspension or verdict, and sends nothing twice`, async t => {
  const directory = testdir(t)
  const upstream = `${directory}/upstream.log`
  writeFileSync(upstream, '')
  const seed = Number(Date.now() % 2 ** 31)
  t.comment(`seed ${seed}`)
  const told: string[] = []
  for (const delay of fc.sample(fc.integer({ min: 0, max: 100 }), { numRuns: lives, seed })) {
    told.push(...(await linesUntilKilled([child, directory, upstream], delay)))
  }

  const clock = createClock()
  const desk = await openDesk({ directory, clock, alone })
  t.teardown(() => desk.store.close())
  // Of one id the last word counts: Pending, and then the verdict.
  const last = new Map(told.map(line => line.split(' ') as [string, string]).map(([what, id]) => [id, what]))
  const reached = readFileSync(upstream, 'utf8').split('\n').filter(Boolean)
  t.equal(new Set(reached).size, reached.length, 'nothing reached the upstream twice')

  const wrong: string[] = []
  for (const [id, what] of last) {
    const item = await desk.queue.get(id, reviewer)
    const sent = reached.includes(id)
    const isTrue =
      what === 'Pending'
        ? item !== undefined && (!sent || item.status === 'Approved')
        : item?.status === what && sent === (what === 'Approved')
    if (!isTrue) wrong.push(`${id} was told to be ${what}, is ${item?.status}, ${sent ? 'sent' : 'not sent'}`)
  }
  t.strictSame(wrong, [])

  // What was in flight is unknown when its lease is over, and stays as often sent as it was.
  clock.advance(lease)
  await desk.queue.sweep()
  const unknown = desk.events.filter(event => event.type === 'unknown')
  for (const { hitlId } of unknown) {
    t.match(await desk.queue.approve(hitlId ?? '', verdict()), {
      refusal: 'already_decided',
      members: { replay: 'unknown' },
    })
  }
  t.equal(desk.sent.length, 0)
  t.comment(`${last.size} requests, ${reached.length} sent, ${unknown.length} unknown`)
})
