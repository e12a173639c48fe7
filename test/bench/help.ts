import { globSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { runToEnd } from '../fixtures/process.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const scripts = globSync('bench/*.ts', { cwd: root }).filter(file => !/(?:origin|scan)\.ts$/.test(file))

t.test('every benchmark explains itself, whether or not its packages are installed', async t => {
  for (const script of scripts) {
    const { code, out, err } = await runToEnd(t, ['--help'], { cwd: root, script: root + script })
    t.equal(code, 0, script)
    t.match(out + err, /(?:node bench\/|npm run bench)/, script)
  }
})
