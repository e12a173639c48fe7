import type { HitlFilter } from '../storage/store.ts'
import type { HitlOptions } from './model.ts'
import { lineText } from './view.ts'

/** Items read at a time: others wait a fraction of a millisecond for them. */
const slice = 100

type ListOptions = Pick<HitlOptions, 'store' | 'clock' | 'agentName'>

/** Pending requests, oldest first, some at a time; each a RequestView for those who read all, as JSON text. */
export async function* listPending(
  { store, clock, agentName }: ListOptions,
  filter?: HitlFilter,
): AsyncGenerator<readonly string[], void, void> {
  const now = clock.now()
  const readOn = (after?: HitlFilter['after']) => {
    const reading = store.hitl.pending(now, { ...filter, after, limit: slice })
    // A reader that stops early never awaits the last read.
    reading.catch(() => {})
    return reading
  }
  for (let reading = readOn(); ; ) {
    const lines = await reading
    // The next ones are read while these are shown.
    if (lines.length === slice) reading = readOn(lines.at(-1))
    yield lines.map(line => lineText(line.summary, line, { now, agentName }))
    if (lines.length < slice) return
  }
}
