import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { verifyTrail } from '../../src/audit/trail.ts'
import type { Store } from '../../src/storage/store.ts'
import { linesUntilKilled } from '../fixtures/process.ts'
import { runs } from '../fixtures/runs.ts'
import { openSqliteStore } from '../fixtures/sqlite.ts'
import { testdir } from '../fixtures/testdir.ts'

const writer = new URL('./child/writer.ts', import.meta.url).pathname
const lives = runs(40)

/** Numbers in [0, 1) from a seed, so that a run can be repeated. */
function random(seed: number): () => number {
  return () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return seed / 2 ** 32
  }
}

/** Whether what an acknowledged write told is still so. */
async function holds(store: Store, agents: Set<string>, line: string): Promise<boolean> {
  const [what = '', id = ''] = line.split(' ')
  if (what === 'agent') return agents.has(id)
  const item = await store.hitl.get(id, 1_500)
  return what === 'Pending' ? item !== undefined : item?.status === what
}

t.test(`a process killed ${lives} times loses no acknowledged write`, async t => {
  const directory = testdir(t)
  const next = random(20_251_121)
  const told: string[] = []
  for (let life = 0; life < lives; life++)
    told.push(...(await linesUntilKilled([writer, directory, `${life}`], next() * 100)))

  const store = await openSqliteStore({ directory })
  t.teardown(() => store.close())
  const agents = new Set((await store.agents.all()).map(agent => agent.id))
  const kept = await Promise.all(told.map(line => holds(store, agents, line)))
  t.strictSame(
    told.filter((_, n) => !kept[n]),
    [],
  )
  t.ok(told.length >= lives, `${told.length} writes were acknowledged`)
  const verified = await verifyTrail(store.audit)
  t.match(verified, { ok: true })
  t.ok(verified.ok && verified.entries >= told.length, 'each has its audit entry')
})

t.test('a first start that is killed at any moment leaves a folder that opens', async t => {
  const directory = testdir(t)
  const next = random(7)
  for (let life = 0; life < 4; life++) {
    const child = spawn(process.execPath, [writer, `${directory}/${life}`, 'x'], { stdio: 'ignore' })
    const ended = once(child, 'close')
    await setTimeout(60 + next() * 200)
    child.kill('SIGKILL')
    await ended
    const store = await openSqliteStore({ directory: `${directory}/${life}` })
    t.match(await verifyTrail(store.audit), { ok: true })
    await store.close()
  }
})
