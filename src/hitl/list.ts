import type { HitlFilter, HitlLine } from '../storage/store.ts'
import type { HitlOptions } from './model.ts'
import { lateSummary, lineText } from './view.ts'

/** Items read at a time: others wait a fraction of a millisecond for them. */
const slice = 100

type ListOptions = Pick<HitlOptions, 'store' | 'clock' | 'agentName'>

/** Pending requests, oldest first, some at a time; each a RequestView for those who read all, as JSON text. */
export async function* listPending(
  options: ListOptions,
  filter?: HitlFilter,
): AsyncGenerator<readonly string[], void, void> {
  const now = options.clock.now()
  const readOn = (after?: HitlFilter['after']) => {
    const reading = options.store.hitl.pending(now, { ...filter, after, limit: slice })
    // Whoever stops before the end does not come back for it.
    reading.catch(() => {})
    return reading
  }
  for (let reading = readOn(); ; ) {
    const lines = await reading
    // The next ones are read while these are shown.
    if (lines.length === slice) reading = readOn(lines.at(-1))
    yield await textsOf(lines, options, now)
    if (lines.length < slice) return
  }
}

async function textsOf(lines: readonly HitlLine[], options: ListOptions, now: number): Promise<string[]> {
  const texts: string[] = []
  for (const line of lines) {
    const summary = line.summary ?? (await summaryOf(line.id, options, now))
    if (summary !== undefined) texts.push(lineText(summary, line, { now, agentName: options.agentName }))
  }
  return texts
}

/** Undefined when the item was decided meanwhile. */
async function summaryOf(id: string, { store }: ListOptions, now: number): Promise<string | undefined> {
  const item = await store.hitl.get(id, now)
  return item?.status === 'Pending' ? lateSummary(item) : undefined
}
