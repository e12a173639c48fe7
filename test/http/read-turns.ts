import t from 'tap'
import { createReadTurns } from '../../src/http/read-turns.ts'

const mebibyte = 2 ** 20

/** Turns whose rounds of the event loop the test makes. */
function turnsByHand() {
  const rounds: (() => void)[] = []
  const turns = createReadTurns(work => rounds.push(work))
  const resumed: string[] = []
  /** Bodies by name: each has one function that goes on. */
  const bodies = new Map<string, () => void>()
  const goOn = (name: string) => {
    const known = bodies.get(name) ?? (() => resumed.push(name))
    bodies.set(name, known)
    return known
  }
  return {
    ...{ rounds, turns, resumed, goOn },
    read: (name: string, mebibytes: number) => turns.isOver(mebibytes * mebibyte, goOn(name)),
    round: () => rounds.shift()?.(),
  }
}

t.test('a round reads no more than a few MiB, and the next one as many again', async t => {
  const { read, round, resumed } = turnsByHand()
  t.notOk(read('a', 1))
  t.ok(read('b', 1), 'the round has read enough')
  t.ok(read('c', 1), 'for all bodies')
  round()
  t.strictSame(resumed, ['b', 'c'])
  t.notOk(read('b', 1))
})

t.test('bodies go on in the order in which they stopped, a few in each round', async t => {
  const { read, round, resumed, rounds } = turnsByHand()
  const names = Array.from({ length: 10 }, (_, index) => `body ${index}`)
  t.notOk(read('first', 1))
  for (const name of names) t.ok(read(name, 1))
  round()
  t.strictSame(resumed, names.slice(0, 4))
  t.ok(read('body 0', 2), 'one that reads on goes behind the others')
  round()
  round()
  t.strictSame(resumed, [...names, 'body 0'])
  t.equal(rounds.length, 0, 'nothing is left to do')
})

t.test('a body that was given up is not resumed', async t => {
  const { read, round, resumed, turns, goOn } = turnsByHand()
  t.ok(read('a', 3))
  t.ok(turns.awaits(goOn('a')))
  turns.forget(goOn('a'))
  t.notOk(turns.awaits(goOn('a')))
  round()
  t.strictSame(resumed, [])
})

t.test('a round in which nothing is read is not scheduled', async t => {
  const { read, round, rounds } = turnsByHand()
  read('a', 1)
  t.equal(rounds.length, 1)
  round()
  t.equal(rounds.length, 0)
})
