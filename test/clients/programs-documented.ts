/** The table of programs in docs/forward-proxy.md is that of the driver: what stands there was tried. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { clients, modesOf } from './run/clients.ts'
import { type Mode, modes } from './run/modes.ts'

const page = readFileSync(new URL('../../docs/forward-proxy.md', import.meta.url), 'utf8')
const titles = Array.from(page.matchAll(/^\| ([^|\n]+) \| [\d.]+ \|(?:[^|\n]*\|){3}$/gm), ([, title]) => title)

t.test('each client has a row with the version that was tried, and each row a client', async t => {
  t.strictSame(
    titles,
    clients.map(({ title }) => title),
  )
  t.equal(new Set(clients.map(({ name }) => name)).size, clients.length)
})

/** How the page names what a client is asked for. */
const names: Readonly<Partial<Record<Mode, string>>> = {
  ...{ stream: 'parts', down: '100 MB down', up: '100 MB up', revoked: 'revocation' },
}

t.test('what a client is not called for stands on the page, with the reason', async t => {
  const [section = ''] = page.slice(page.indexOf('| Not called for |')).split('\n\n', 1)
  const rows = Array.from(section.matchAll(/^\| ([^|\n]+) \| ([^|\n]+) \| [^|\n]+ \|$/gm), ([, title, calls]) => [
    ...[title, calls],
  ])
  const missing = clients.map(client => {
    const absent = (Object.keys(modes) as Mode[]).filter(mode => !modesOf(client).includes(mode))
    return [client.title, absent.map(mode => names[mode] ?? mode).join(', ')]
  })
  const expected = missing.filter(([, calls]) => calls !== '')
  t.strictSame(rows, expected)
})
