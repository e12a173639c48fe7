/** Forms and queries are read as URLSearchParams reads them, and forms that can be read in two ways are refused. */
import fc from 'fast-check'
import t from 'tap'
import type { Form } from '../../../src/policy/request/form.ts'
import { FormReading, readQuery } from '../../../src/policy/request/form-reading.ts'
import { runs } from '../../fixtures/runs.ts'

function oracle(text: string): Record<string, string[]> {
  const pairs: Record<string, string[]> = {}
  // URLSearchParams drops the question mark in front; one in the text stays.
  for (const [name, value] of new URLSearchParams(`?${text}`)) pairs[` ${name}`] = [...(pairs[` ${name}`] ?? []), value]
  return pairs
}

const listed = (pairs: object) =>
  Object.fromEntries(Object.entries(pairs).map(([name, value]) => [` ${name}`, [value].flat()]))

const pieces = [
  'a',
  'b',
  '=',
  '&',
  '+',
  '%',
  '%41',
  '%c3%a9',
  '%F0%9F%98%80',
  '%ff',
  '%zz',
  '%ef%bb%bf',
  '%ed%a0%80',
  '?',
  'é',
  '%00',
  '__proto__',
]
const text = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map(parts => parts.join(''))

t.test('a query is read as URLSearchParams reads it', async t => {
  fc.assert(
    fc.property(text, query => JSON.stringify(listed(readQuery(query).pairs)) === JSON.stringify(oracle(query))),
    { numRuns: runs(3_000) },
  )
  t.pass('holds')
})

t.test('a form is read alike, or not at all', async t => {
  fc.assert(
    fc.property(text, fc.constantFrom(12, 13, 32_768), (form, pieceLength) => {
      const reading = new FormReading(form, 100, pieceLength)
      while (!reading.advance({ left: 1 }));
      const read = reading.result
      const mayDiffer = /%(?![0-9a-f]{2})/i.test(form) || JSON.stringify(oracle(form)).includes('\ufffd')
      return typeof read === 'string'
        ? mayDiffer
        : !mayDiffer && JSON.stringify(listed(read.pairs)) === JSON.stringify(oracle(form))
    }),
    { numRuns: runs(3_000) },
  )
  t.pass('holds')
})

t.test('a long value is read in steps that each decode a bounded number of characters', async t => {
  const reading = new FormReading(`a=${'%41'.repeat(1_000_000)}`, 100)
  let most = 0
  for (let isOver = false; !isOver; ) {
    const budget = { left: 1 }
    isOver = reading.advance(budget)
    most = Math.max(most, 1 - budget.left)
  }
  t.equal((reading.result as Form).pairs['a']?.length, 1_000_000)
  t.ok(most <= 16_500, `${most} steps`)
})
