/** The record of the tools that agents have seen. T65. */

import t from 'tap'
import { createToolNotes, type ListedTool, type ToolChange } from '../../src/agents/tools.ts'
import { createRepeats } from '../../src/audit/repeats.ts'
import type { AuditEntry, Store, ToolDigests } from '../../src/storage/store.ts'
import { createClock } from '../fixtures/clock.ts'

function open() {
  const kept = new Map<string, ToolDigests>()
  const entries: AuditEntry[] = []
  const changes: ToolChange[] = []
  let told = 0
  const clock = createClock()
  let writes = 0
  const store: Pick<Store, 'tools'> = {
    tools: {
      digests: async (agentId, server) => kept.get(`${agentId} ${server}`)?.digests,
      async keep(tools, _limits, entry) {
        writes += 1
        kept.set(`${tools.agentId} ${tools.server}`, tools)
        if (entry !== undefined) entries.push(entry)
      },
    },
  }
  const onChange = (change: ToolChange, isTold: boolean) => {
    changes.push(change)
    if (isTold) told += 1
  }
  const repeats = createRepeats({ audit: async entry => entries.push(entry), clock })
  const noteRepeated: typeof repeats.note = (...what) => repeats.note(...what)
  const notes = createToolNotes({ store, clock, noteRepeated, onChange })
  const note = (tools: readonly ListedTool[], agentId = 'a1', server = 's1') =>
    notes.note({ agentId, server, tools, requestId: 'r1' })
  return { note, entries, changes, kept, clock, repeats, writes: () => writes, told: () => told }
}

const tool = (name: string, digest: string): ListedTool => ({ name, digest })

t.test('a tool that is not what it was is published once, and recorded before', async t => {
  const { note, changes, entries, writes } = open()
  await note([tool('add', '1'), tool('drop', '1')])
  await note([tool('add', '1'), tool('drop', '1')])
  t.match([writes(), changes], [1, []])
  await note([tool('add', '2'), tool('new', '1')])
  t.strictSame(changes, [{ agentId: 'a1', server: 's1', tools: ['add'], count: 1 }])
  t.match(entries, [
    {
      actor: 'gateway',
      action: 'mcp.toolChanged',
      subject: 'a1',
      requestId: 'r1',
      details: { server: 's1', tools: ['add'] },
    },
  ])
  await note([tool('add', '2'), tool('drop', '2')])
  t.match(changes[1], { tools: ['drop'] }, 'though it was not listed in between')
  t.equal(changes.length, 2)
})

t.test('agents and servers have records of their own', async t => {
  const { note, changes } = open()
  await note([tool('add', '1')])
  await note([tool('add', '2')], 'a2')
  await note([tool('add', '3')], 'a1', 's2')
  t.strictSame(changes, [])
  await note([tool('add', '2')])
  t.match(changes, [{ agentId: 'a1', server: 's1' }])
})

t.test('lists that come at once are compared one after the other', async t => {
  const { note, changes } = open()
  await Promise.all([note([tool('add', '1')]), note([tool('add', '2')]), note([tool('add', '2')])])
  t.equal(changes.length, 1)
})

t.test('tools of one name count together, and a flood of names takes none out of the record', async t => {
  const { note, changes, kept } = open()
  await note([tool('add', '1'), tool('add', '2')])
  await note([tool('add', '1'), tool('add', '2')])
  t.strictSame(changes, [])
  await note(Array.from({ length: 3_000 }, (_, at) => tool(`t${at}`, '1')))
  t.equal(Object.keys(kept.get('a1 s1')?.digests ?? {}).length, 2_000)
  await note([tool('add', '1')])
  t.match(changes, [{ tools: ['add'], count: 1 }])
  await note(Array.from({ length: 40 }, (_, at) => tool(`t${at}`, '2')))
  t.match([changes[1]?.count, changes[1]?.tools.length], [40, 10])
})

t.test('what is kept does not grow with the length of names, or with the number of tools of one name', async t => {
  const { note, changes, kept } = open()
  const long = 'n'.repeat(100_000)
  const same = Array.from({ length: 1_000 }, () => tool('add', 'd'.repeat(43)))
  await note([tool(long, '1'), tool(`${long}x`, '1'), ...same])
  t.ok(JSON.stringify(kept.get('a1 s1')?.digests).length < 1_000)
  await note([tool(long, '1'), tool(`${long}x`, '2'), ...same])
  t.match(changes, [{ count: 1 }])
  t.ok(String(changes[0]?.tools[0]).length < 200)
})

t.test(
  'people are told of so many changes of an agent within an hour; further ones are one entry with a count',
  async t => {
    const { note, entries, clock, repeats, told } = open()
    const flap = async (times: number, agentId?: string) => {
      for (let at = 0; at < times; at++) await note([tool('add', String(at % 2))], agentId)
    }
    await flap(1_001)
    t.strictSame([entries.length, told()], [21, 20])
    await flap(2, 'a2')
    t.equal(told(), 21)
    clock.advance(3_600_000)
    await repeats.sweep()
    t.match(entries.at(-1), { subject: 'a1', details: { server: 's1', tools: ['add'], count: 979 } })
    await flap(2)
    t.equal(told(), 22)
    t.equal(entries.length, 24)
  },
)

t.test('an entry is short, whatever the server calls itself and its tools', async t => {
  const { note, entries, kept } = open()
  const list = (digest: string) => Array.from({ length: 40 }, (_, n) => tool(`${n}${'€'.repeat(10_000)}`, digest))
  const server = `https://m.example/${'p'.repeat(16_000)}`
  for (const end of ['a', 'b']) await note(list('1'), 'a1', server + end)
  t.equal(kept.size, 2, 'URLs with one beginning are two')
  await note(list('2'), 'a1', `${server}a`)
  const [entry] = entries
  t.match(entry, { details: { count: 40 } })
  t.ok(Buffer.byteLength(JSON.stringify(entry)) < 3_500)
})

t.test('a change that is one of many is on record before its digest is kept', async t => {
  const { note, kept, repeats } = open()
  for (let at = 0; at < 21; at++) await note([tool('add', String(at))])
  repeats.note = async () => Promise.reject(new Error('disk full'))
  t.match(kept.get('a1 s1')?.digests, { add: '20' })
  await t.rejects(note([tool('add', 'x')]))
  t.match(kept.get('a1 s1')?.digests, { add: '20' })
})

t.test('a list that could not be kept is compared again', async t => {
  const changes: ToolChange[] = []
  let fails = true
  const store: Pick<Store, 'tools'> = {
    tools: {
      digests: async () => ({ add: '1' }),
      keep: async () => {
        if (fails) throw new Error('disk full')
      },
    },
  }
  const noteRepeated = async () => {}
  const notes = createToolNotes({ store, clock: createClock(), noteRepeated, onChange: change => changes.push(change) })
  const list = { agentId: 'a1', server: 's1', tools: [tool('add', '2')], requestId: 'r1' }
  await t.rejects(notes.note(list), { message: 'disk full' })
  t.strictSame(changes, [])
  fails = false
  await notes.note(list)
  t.equal(changes.length, 1)
})
