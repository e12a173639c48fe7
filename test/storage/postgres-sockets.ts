import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const child = fileURLToPath(new URL('child/socket-shapes.ts', import.meta.url))

t.test('sockets to the database are of the kind that V8 compiles for those to upstreams', async t => {
  t.equal(execFileSync(process.execPath, ['--allow-natives-syntax', child], { encoding: 'utf8' }), 'true\n')
})
