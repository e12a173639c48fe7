/** Lists of the pipeline (docs/contributing.md, "How to add something"): what is written must also be listed. */
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const folder = fileURLToPath(new URL('../../src/pipeline/', import.meta.url))
const textOf = (file: string): string => readFileSync(folder + file, 'utf8')

/** Names of what files export, by a pattern whose first group is the name. */
function exportedFrom(files: string, pattern: RegExp): string[] {
  return globSync(files, { cwd: folder }).flatMap(file =>
    [...textOf(file).matchAll(pattern)].map(([, name]) => `${name}`),
  )
}

t.test('every reader of answers is in the list', async t => {
  const written = exportedFrom('answers/*.ts', /^export (?:const|function) (\w+Reader)\b/gm)
  const [, body = ''] = /function createReaders([\s\S]*?)\n\}/.exec(textOf('answers/readers.ts')) ?? []
  const listed = [...body.matchAll(/(\w+Reader)\(parts\)/g)].map(([, name]) => `${name}`)
  t.strictSame(written.sort(), listed.sort())
  t.ok(written.length > 1)
})
