import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const path = fileURLToPath(new URL('../../deploy/haproxy.cfg', import.meta.url))

t.test('HAProxy reads deploy/haproxy.cfg without a warning', async t => {
  const { status, stderr, error } = spawnSync('haproxy', ['-c', '-q', '-f', path], { encoding: 'utf8' })
  t.equal(error, undefined)
  t.strictSame({ status, stderr }, { status: 0, stderr: '' })
})
