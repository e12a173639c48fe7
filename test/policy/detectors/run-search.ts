/** Runs of characters are found where a plain loop finds them, by the search of WebAssembly too. */
import fc from 'fast-check'
import t from 'tap'
import { charset, Runs } from '../../../src/policy/detectors/bytes.ts'
import { compileRunSearch } from '../../../src/policy/detectors/run-search.ts'
import { runs } from '../../fixtures/runs.ts'

const sets = ['A-Za-z0-9_./+=-', 'A-Z0-9 -', 'a', '\\x01-\\x7f', '@'].map(charset)
const lengths = [2, 11, 20, 22, 33]

function firstRun(bytes: Buffer, from: number, to: number, { set, least }: { set: Uint8Array; least: number }): number {
  for (let at = from; at < to; at++) {
    let length = 0
    while (length < least && at + length < bytes.length && set[bytes[at + length]!] === 1) length++
    if (length === least) return at
  }
  return to
}

const wanted = sets.flatMap(set => lengths.map(least => ({ set, least })))
const searches = wanted.map(one => ({ ...one, runs: new Runs(one.set, one.least) }))
const compiled = wanted.map(one => ({ ...one, search: compileRunSearch(one.set, one.least)! }))

/** Mostly runs, with any byte between them. */
const textOfRuns = fc
  .array(
    fc.oneof(
      {
        weight: 6,
        arbitrary: fc.tuple(fc.constantFrom('a', 'A1', '@', 'x-', '\x01'), fc.integer({ min: 1, max: 40 })),
      },
      fc.tuple(
        fc.integer({ min: 0, max: 255 }).map(code => String.fromCharCode(code)),
        fc.constant(1),
      ),
      fc.tuple(fc.constant('é'), fc.integer({ min: 1, max: 700 })),
    ),
    { maxLength: 30 },
  )
  .map(parts => Buffer.from(parts.map(([piece, times]) => piece.repeat(times)).join(''), 'latin1'))

const place = fc.integer({ min: 0, max: 4_000 })

t.test('the first run in any part of a text is found', async t => {
  fc.assert(
    fc.property(textOfRuns, place, place, fc.nat(searches.length - 1), (bytes, one, other, which) => {
      const [from, to] = [one, other].map(at => at % (bytes.length + 1)).toSorted((a, b) => a - b) as [number, number]
      const { runs, ...wanted } = searches[which]!
      return runs.next(bytes, from, to) === firstRun(bytes, from, to, wanted)
    }),
    { numRuns: runs(40_000) },
  )
  t.pass('holds')
})

t.test('the search finds it in the shortest parts too, whatever was searched before', async t => {
  fc.assert(
    fc.property(
      textOfRuns,
      place,
      fc.integer({ min: 1, max: 200 }),
      fc.nat(compiled.length - 1),
      (bytes, at, size, which) => {
        const from = at % (bytes.length + 1)
        const to = Math.min(bytes.length, from + size)
        const { search, ...wanted } = compiled[which]!
        return from === to || search(bytes, from, to) === firstRun(bytes, from, to, wanted)
      },
    ),
    { numRuns: runs(40_000) },
  )
  t.pass('holds')
})
