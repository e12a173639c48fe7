import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { grouping, sections, sort, sorts } from './arrangement.ts'
import { openId } from './choice.ts'
import { entriesOf, entryAt, headHeight, type Rows, rowHeight } from './entries.ts'
import { GroupHead } from './group-head.tsx'
import { QueueRow } from './row.tsx'
import { tidy } from './store.ts'

/** Pixels above and below what is visible in which entries are drawn. */
const margin = 6 * rowHeight

/** All requests that wait, of which only those on the screen are drawn. */
export function QueueList() {
  const frame = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const [height, setHeight] = useState(900)
  const list = sections.value
  const rows = useMemo(() => entriesOf(list), [list])
  const latest = useRef(rows)
  latest.current = rows
  const id = openId.value

  useLayoutEffect(() => {
    const box = frame.current
    if (box === null) return
    const watch = new ResizeObserver(() => setHeight(box.clientHeight))
    watch.observe(box)
    return () => watch.disconnect()
  }, [])

  // What is over goes away when the reviewer goes on; what is under the pointer stays there.
  useEffect(() => {
    const before = topOf(latest.current, id)
    tidy(id)
    const after = topOf(entriesOf(sections.peek()), id)
    if (frame.current !== null && before !== undefined && after !== undefined) frame.current.scrollTop -= before - after
    reveal(frame.current, after)
  }, [id, sort.value, grouping.value])

  const first = entryAt(rows, top - margin)
  const last = entryAt(rows, top + height + margin)
  const order = sorts.find(([name]) => name === sort.value)?.[1].toLowerCase()
  return (
    <div class="list-frame" ref={frame} onScroll={event => setTop(event.currentTarget.scrollTop)}>
      <ol class="list" style={{ height: `${rows.height}px` }} aria-label={`Requests that wait, ${order}`}>
        {rows.entries
          .slice(first, last + 1)
          .map(entry =>
            entry.row === undefined ? (
              <GroupHead key={`${entry.section.by} ${entry.section.name}`} section={entry.section} top={entry.top} />
            ) : (
              <QueueRow key={entry.row.view.id} row={entry.row} top={entry.top} at={entry.at} of={rows.count} />
            ),
          )}
      </ol>
    </div>
  )
}

const topOf = ({ entries }: Rows, id: string | undefined): number | undefined =>
  entries.find(({ row }) => row !== undefined && row.view.id === id)?.top

function reveal(frame: HTMLElement | null, top: number | undefined): void {
  if (frame === null || top === undefined) return
  // Its heading may be above it.
  if (top - headHeight < frame.scrollTop) frame.scrollTop = top - headHeight
  else if (top + rowHeight > frame.scrollTop + frame.clientHeight)
    frame.scrollTop = top + rowHeight - frame.clientHeight
}
