/** A first thread that hangs while the thread of the storage, or one of its own, watches it. */

import { beginBeats, createWatch, watchInThread } from '../../../src/runtime/watchdog.ts'
import { openSqliteStore } from '../../../src/storage/sqlite/open.ts'

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
