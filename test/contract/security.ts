import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('../..', import.meta.url))
const text = readFileSync(`${root}SECURITY.md`, 'utf8')

/** The rows of the tables of threats: id, and the files that hold against it. */
const threats = [...text.matchAll(/^\| (T\d\d) \|.*\| ([^|]*) \|$/gm)].map(([, id = '', files = '']) => ({
  id,
  files: [...files.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file),
}))

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `T${String(from + index).padStart(2, '0')}`)

t.test(
  'SECURITY.md names every critical and high threat once, and those of redirects, of protocols on top of HTTP, of the forward proxy, of budgets, chats and credentials',
  async t => {
    t.strictSame(
      threats.map(({ id }) => id),
      [...numbers(1, 16), ...numbers(20, 46), 'T62', 'T63', 'T64', 'T65', 'T66', 'T69', ...numbers(70, 92)],
    )
  },
)

t.test('each threat has tests, which are there and name it', async t => {
  for (const { id, files } of threats) {
    t.ok(files.length > 0, id)
    for (const file of files) {
      t.match(file, /^test\/.+\.ts$/)
      if (!existsSync(root + file)) t.fail(`${file} of ${id} is not there`)
      else t.match(readFileSync(root + file, 'utf8'), new RegExp(`\\b${id}\\b`), `${file} names ${id}`)
    }
  }
})

t.test('each thing that an agent can leave behind has tests that go to its bound, which are there', async t => {
  const [, section = ''] = /^## What one agent can leave behind$(.*?)^## /ms.exec(text) ?? []
  const rows = [...section.matchAll(/^\| (?!What|-)(.*) \|$/gm)].map(([, row = '']) => row.split(' | '))
  t.ok(rows.length > 10)
  for (const [what = '', ...cells] of rows) {
    t.equal(cells.length, 4, what)
    const files = [...(cells.at(-1) ?? '').matchAll(/`([^`]+)`/g)].map(([, file = '']) => file)
    t.ok(files.length > 0, what)
    for (const file of files) t.ok(/^test\/.+\.ts$/.test(file) && existsSync(root + file), `${what}: ${file}`)
  }
})

t.test('every script that SECURITY.md names is there', async t => {
  for (const [, file = ''] of text.matchAll(/`((?:bench|deploy)\/[^`]+)`/g)) t.ok(existsSync(root + file), file)
})
