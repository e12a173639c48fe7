/** Lists of tools are read in turns, so that none keeps the event loop busy. T64. */

import t from 'tap'
import { readToolList } from '../../../src/pipeline/answers/tool-list.ts'
import type { Sendable } from '../../../src/pipeline/exchange.ts'
import type { Parts } from '../../../src/pipeline/parts.ts'
import { createClock } from '../../fixtures/clock.ts'

/** Reads a list of so many tools. Between two of them pass so many milliseconds. Returns the number of turns. */
async function turnsOf(tools: readonly object[], msEach: number): Promise<number> {
  const still = createClock()
  const clock = {
    now: still.now,
    steady() {
      still.advance(msEach)
      return still.steady()
    },
  }
  let turns = 0
  const workTurns = { hasRoom: true, next: async () => void turns++, spend: () => {} }
  const config = { Mcp: { FilterTools: false }, Policy: { Mode: 'enforce' } }
  const noteTools = async () => {}
  // The parts that reading uses.
  const parts = { clock, config, workTurns, noteTools } as unknown as Parts
  const exchange = { agent: { id: 'a' }, target: { origin: { key: 'https://a' }, path: '/' } } as unknown as Sendable
  const bytes = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools } }))
  t.strictSame(await readToolList(bytes, exchange, parts), { bytes, isChanged: false })
  return turns
}

const named = (count: number, more: object = {}) =>
  Array.from({ length: count }, (_, at) => ({ name: `t${at}`, ...more }))

t.test('decisions that take long have a turn each', async t => {
  const quick = await turnsOf(named(300), 0)
  t.ok(quick < 10, String(quick))
  const slow = await turnsOf(named(300), 2)
  t.ok(slow >= 300, String(slow))
})

t.test('what tools say is digested in turns', async t => {
  const small = await turnsOf(named(1), 0)
  const values = Object.fromEntries(Array.from({ length: 9_000 }, (_, at) => [`k${at}`, at]))
  const large = await turnsOf(named(4, { inputSchema: values }), 0)
  t.ok(large > small + 10, `${small} ${large}`)
})
