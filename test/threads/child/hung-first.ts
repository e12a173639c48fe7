/** A first thread that hangs while it is watched. */
import { watchFirstThread } from '../../../src/cli/watchdog.ts'

watchFirstThread(() => {}, 2)
for (;;);
