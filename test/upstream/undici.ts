/** The second client of HTTP/1.1 holds to the same tests as the first. All of them: `npm run test:undici`. */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { runFiles } from '../fixtures/run-files.ts'

const cwd = fileURLToPath(new URL('../..', import.meta.url))
const env = { ...process.env, GATEWAY_TEST_CLIENT: 'Undici' }

const files = ['test/upstream/http1-reuse.ts', 'test/proxy/upstream-fails.ts']
const { results } = await runFiles(files, { cwd, env })

for (const { file, passed, failed, said } of results) {
  t.test(`${file} passes with undici`, async t => {
    t.ok(passed > 5)
    t.equal(failed, 0, said)
  })
}
