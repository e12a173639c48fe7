import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { createWorkTurns, doPartsInTurns } from '../../src/pipeline/work-turns.ts'

/** Turns whose rounds of the event loop the test makes. */
function turnsByHand() {
  const rounds: (() => void)[] = []
  const turns = createWorkTurns(work => rounds.push(work))
  const taken: string[] = []
  const take = async (agentId: string, times: number) => {
    for (let time = 1; time <= times; time++) {
      await turns.next(agentId)
      taken.push(`${agentId} ${time}`)
    }
  }
  /** One round; what its turn resolves has run when this is done. */
  const round = async () => {
    rounds.shift()?.()
    await setImmediate()
  }
  return { take, taken, round, rounds, turns }
}

t.test('one turn is given in each round, however many wait', async t => {
  const { take, taken, round, rounds } = turnsByHand()
  const all = [take('a', 1), take('b', 1), take('c', 1)]
  t.strictSame(taken, [])
  for (let count = 1; count <= 3; count++) {
    t.equal(rounds.length, 1)
    await round()
    t.equal(taken.length, count)
  }
  await Promise.all(all)
  t.equal(rounds.length, 0, 'nothing is left to do')
})

t.test('one agent with much work does not hold up another', async t => {
  const { take, taken, round } = turnsByHand()
  const all = [...Array.from({ length: 10 }, () => take('greedy', 3)), take('other', 2)]
  for (let count = 0; count < 5; count++) await round()
  t.ok(taken.includes('other 2'), String(taken))
  for (let count = 0; count < 27; count++) await round()
  await Promise.all(all)
  t.equal(taken.length, 32)
})

t.test('work that has begun ends before other work of its agent begins', async t => {
  const { rounds, round, turns } = turnsByHand()
  const taken: string[] = []
  const work = async (name: string) => {
    for (const time of [1, 2]) {
      await turns.next('agent', time > 1)
      taken.push(`${name} ${time}`)
    }
  }
  const all = [work('first'), work('second')]
  while (rounds.length > 0) await round()
  await Promise.all(all)
  t.strictSame(taken, ['first 1', 'first 2', 'second 1', 'second 2'])
})

t.test('short work of many is done in one round, as long as the round has steps left', async t => {
  const { rounds, round, turns } = turnsByHand()
  const taken: string[] = []
  const work = async (agentId: string, steps: number) => {
    if (!turns.hasCapacity) await turns.next(agentId)
    taken.push(agentId)
    turns.spend(steps)
  }
  const all = [work('a', 30_000), work('b', 40_000), ...['c', 'd', 'e', 'f'].map(name => work(name, 25_000))]
  t.strictSame(taken, ['a', 'b'], 'the others wait')
  await round()
  t.strictSame(taken, ['a', 'b', 'c', 'd', 'e'])
  await round()
  t.strictSame(taken, ['a', 'b', 'c', 'd', 'e', 'f'])
  await Promise.all(all)
  while (rounds.length > 0) await round()
  t.equal(turns.hasCapacity, true)
})

t.test('what the work of a turn leads to is done before the next turn of the same round', async t => {
  const { round, turns } = turnsByHand()
  const done: string[] = []
  const work = async (name: string) => {
    await turns.next(name)
    done.push(`${name} decided`)
    turns.spend(1)
    for (let tick = 0; tick < 20; tick++) await Promise.resolve()
    done.push(`${name} sent`)
  }
  const all = [work('a'), work('b')]
  await round()
  await Promise.all(all)
  t.strictSame(done, ['a decided', 'a sent', 'b decided', 'b sent'])
})

t.test('work that comes while others wait does not overtake them', async t => {
  const { round, turns } = turnsByHand()
  const waiting = turns.next('a')
  t.equal(turns.hasCapacity, false)
  await round()
  await waiting
  t.equal(turns.hasCapacity, true)
})

t.test('parts of divided work are turns of its agent, and the first is done at once where there is room', async t => {
  const { take, taken, round, turns } = turnsByHand()
  function* work(name: string, parts: number): Generator<void, string> {
    for (let part = 1; part <= parts; part++) {
      taken.push(`${name} ${part}`)
      if (part < parts) yield
    }
    return name
  }
  const greedy = doPartsInTurns(work('greedy', 6), { agentId: 'greedy', steps: 1_000_000, turns })
  t.strictSame(taken, ['greedy 1'])
  const other = take('other', 1)
  const short = doPartsInTurns(work('short', 1), { agentId: 'short', steps: 1, turns })
  for (let count = 0; count < 3; count++) await round()
  t.ok(taken.includes('other 1') && taken.includes('short 1'), String(taken))
  t.notOk(taken.includes('greedy 6'))
  for (let count = 0; count < 9; count++) await round()
  t.strictSame([await greedy, await short, await other], ['greedy', 'short', undefined])
})
