/** An event that came while a gateway stopped ended its process: it was passed on over a channel that was closed. */
import { mock } from 'node:test'
import t from 'tap'
import { linkThreads, shareActivity } from '../../src/threads/share.ts'

t.test('what is noted after the close is sent to nobody', async t => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const recent = shareActivity([linkThreads('a channel of this test')])
  recent.activity.toolChanged('a1', 0)
  recent.close()
  recent.activity.toolChanged('a1', 1)
  t.doesNotThrow(() => mock.timers.tick(1_000))
})
