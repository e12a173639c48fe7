import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { packagePrograms, programs } from '../fixtures/programs.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (name: string) => readFileSync(join(root, name), 'utf8')
const readme = read('README.md')
const pages = readdirSync(join(root, 'docs')).filter(name => name.endsWith('.md'))

t.test('every variable in a command was set in one above it on the same page', async t => {
  let count = 0
  for (const [name, text] of [
    ['README', readme] as const,
    ...pages.map(page => [page, read(`docs/${page}`)] as const),
  ]) {
    const commands = Array.from(text.matchAll(/^```sh\n([\s\S]*?)^```/gm), ([, code]) => code).join('\n')
    for (const { 1: variable, index } of commands.matchAll(/\$\{?([A-Z]\w*)/g)) {
      const isSet = new RegExp(`^${variable}=`, 'm').test(commands.slice(0, index))
      if (!isSet && variable !== 'PATH') t.fail(`${name}: ${variable} is not set`)
      count += 1
    }
  }
  t.ok(count > 20)
})

t.test('the README is at most 12 KB, the page about running it 10 KB', async t => {
  t.ok(Buffer.byteLength(readme) <= 12_288)
  t.ok(Buffer.byteLength(read('docs/running.md')) <= 10_240)
})

t.test('every command of the package that the documents name is there', async t => {
  const { scripts } = JSON.parse(read('package.json'))
  for (const text of [readme, ...pages.map(page => read(`docs/${page}`))]) {
    for (const [, name] of text.matchAll(/npm run (?:-s )?([\w-]+)/g)) t.type(scripts[name!], 'string', name!)
  }
})

t.test('the pages name the commands for tests, and the programs that they need', async t => {
  const lines = Array.from(read('docs/contributing.md').matchAll(/^apt-get install (.*)$/gm), ([, names = '']) => names)
  t.strictSame(
    lines.map(names => names.split(' ')),
    [Object.keys(programs), Object.keys(packagePrograms)],
  )
  for (const page of ['README.md', 'docs/contributing.md']) {
    t.match(read(page), /^npm ci && npm test$/m, page)
    t.match(read(page), 'npm run test:system', page)
  }
  const ci = read('.ci/run')
  for (const command of ['npm ci', 'npm test', 'npm run -s test:system']) t.match(ci, command)
})
