/**
 * T46, and all the others at once: a mixed attack on a gateway in a process of its own, for some seconds. `bench/hostile.ts`
 * is the same for as long as you like. It ends with 1 when the process died, is not well or keeps what it should not, when
 * something refused reached the upstream or something approved reached it twice, and when the audit trail is broken or
 * tells other verdicts than were given.
 */

import t from 'tap'
import { runToEnd } from '../fixtures/process.ts'
import { testdir } from '../fixtures/testdir.ts'

const script = new URL('../../bench/hostile.ts', import.meta.url).pathname

t.test('a mixed attack ends with the same process, nothing let through, and a true audit trail', async t => {
  const { code, out, err } = await runToEnd(t, ['--seconds', '5', '--growth', '256'], { script, cwd: testdir(t) })
  t.equal(code, 0, out + err)
  t.match(out, /^passed$/m)
})
