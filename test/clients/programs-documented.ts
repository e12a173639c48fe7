/** The table of programs in docs/forward-proxy.md is that of the driver: what stands there was tried. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { clients } from './run/clients.ts'

const page = readFileSync(new URL('../../docs/forward-proxy.md', import.meta.url), 'utf8')
const titles = Array.from(page.matchAll(/^\| ([^|\n]+) \| [\d.]+ \|(?:[^|\n]*\|){3}$/gm), ([, title]) => title)

t.test('each client has a row with the version that was tried, and each row a client', async t => {
  t.strictSame(
    titles,
    clients.map(({ title }) => title),
  )
  t.equal(new Set(clients.map(({ name }) => name)).size, clients.length)
})
