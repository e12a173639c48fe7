/** Shapes that an admin has cleared do not come back: neither with bodies that were being read, nor from other threads. */
import t from 'tap'
import { openRecording, type RecordingParts } from '../../src/gateway/recording.ts'
import type { TakenShapes } from '../../src/pipeline/ends/recorder.ts'
import type { ShapeCount } from '../../src/storage/store.ts'
import { createClock } from '../fixtures/clock.ts'
import { testConfig } from '../fixtures/gateway.ts'

const count = (digest: string, firstAt: number, lastAt = firstAt): ShapeCount => ({
  ...{ agentId: 'a', digest, shape: '{}', outcome: '{}', values: [], fields: {}, count: 1, days: [] },
  ...{ firstAt, lastAt },
})
const taken = (...counts: readonly ShapeCount[]): TakenShapes => ({ counts, skipped: [], samples: [] })

/** With a recorder whose noted requests are counted once somebody waits until they are read. */
function open() {
  const clock = createClock()
  const stored: { counts: string[]; skipped: readonly string[] } = { counts: [], skipped: [] }
  let unread = [count('unread', clock.now())]
  let read: ShapeCount[] = []
  const recorder = {
    async read() {
      read = read.concat(unread)
      unread = []
    },
    take() {
      const all = read
      read = []
      return taken(...all)
    },
  }
  const shapes = {
    async add(counts: readonly ShapeCount[], skipped: readonly string[]) {
      stored.counts.push(...counts.map(({ digest }) => digest))
      stored.skipped = skipped
      return []
    },
    async of() {
      return stored.counts
    },
    async clear() {
      stored.counts = []
    },
    prune: async () => {},
  }
  const parts = {
    ...{ clock, config: testConfig({}), report: t.fail, dataPlane: { recorder, bounds: { reached() {} } } },
    ...{ store: { shapes, hits: { prune: async () => {} } }, identity: { tokens: { secret: Buffer.alloc(32) } } },
    ...{ recent: { hits: { unstored: () => [] } }, rules: { policies: { book: { list: () => [] } } } },
  }
  return { clock, stored, recording: openRecording(parts as unknown as RecordingParts, []) }
}

const by = { actor: 'admin', requestId: null }

t.test('what was noted but not read yet is cleared', async t => {
  const { recording, stored } = open()
  await recording.clear('a', by)
  await recording.of('a')
  t.strictSame(stored.counts, [])
})

t.test('what another thread sends later is cleared, but for what came later', async t => {
  const { clock, recording, stored } = open()
  const at = clock.now()
  await recording.clear('a', by)
  recording.add(taken(count('before', at), count('both', at, at + 1), { ...count('other', at), agentId: 'b' }))
  // It would be stored, which the store here cannot do.
  const sample = { agentId: 'a', digest: 'before', at, request: { body: Buffer.alloc(1) } }
  recording.add({ ...taken(count('after', at + 1)), samples: [sample as unknown as TakenShapes['samples'][number]] })
  await recording.of('a')
  t.strictSame(stored, { counts: ['other', 'after'], skipped: ['a'] })
  clock.advance(70_000)
  await recording.sweep()
  recording.add(taken(count('long ago', at)))
  await recording.of('a')
  t.match(stored.counts.at(-1), 'long ago', 'no time is kept for ever')
})
