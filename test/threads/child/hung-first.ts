/** A first thread that hangs while the thread of the storage, or one of its own, watches it. */
import { openSqliteStore } from '../../../src/storage/sqlite/open.ts'
import { beginBeats, createWatch, watchInThread } from '../../../src/watchdog.ts'

const [, , watcher, when] = process.argv
const watch = createWatch(2)
if (watcher === 'storage') await openSqliteStore({ directory: 'data', watch })
else watchInThread(watch, () => {})
if (when === 'starting') {
  // Longer than the watch is patient.
  const until = performance.now() + 4_500
  while (performance.now() < until);
  process.exit()
}
beginBeats(watch)
for (;;);
