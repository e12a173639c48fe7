/** The second client of HTTP/1.1 holds to the same tests as the first. All of them: `npm run test:undici`. */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { runFile } from '../fixtures/run-file.ts'

const cwd = fileURLToPath(new URL('../..', import.meta.url))
const env = { ...process.env, GATEWAY_TEST_CLIENT: 'Undici' }

for (const file of ['test/upstream/http1-reuse.ts', 'test/proxy/upstream-fails.ts']) {
  t.test(`${file} passes with undici`, async t => {
    const { passed, failed, said } = await runFile(file, { cwd, env })
    t.ok(passed > 5)
    t.equal(failed, 0, said)
  })
}
