/** Lists of the pipeline (docs/contributing.md, "How to add something"): what is written must also be listed. */
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(root + file, 'utf8')

/** All that a pattern finds: its first group. */
const found = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, name]) => `${name}`)

/** Names of functions that the pipeline exports, by their endings or beginnings. */
const exported = (pattern: RegExp): string[] =>
  globSync('src/pipeline/**/*.ts', { cwd: root }).flatMap(file => found(read(file), pattern))

/** The text of a declaration at the left margin, up to its closing bracket there. */
function declared(file: string, name: string): string {
  const [, body] = new RegExp(`(?:function|const) ${name}\\b([\\s\\S]*?)\\n[}\\]]`).exec(read(file)) ?? []
  if (body === undefined) throw new Error(`${file} declares no ${name}`)
  return body
}

const pipeline = 'src/pipeline/pipeline.ts'

t.test('every reader of answers is in the list', async t => {
  const written = exported(/^export (?:const|function) (\w+Reader)\b/gm)
  const listed = found(declared('src/pipeline/answers/readers.ts', 'createReaders'), /(\w+Reader)\(parts\)/g)
  t.strictSame(listed.sort(), written.sort())
  t.ok(written.length > 1)
})

t.test('everyone who listens to ends is in the list', async t => {
  const written = exported(/^export (?:const|function) (\w+Listener)\b/gm)
  const listed = found(declared('src/pipeline/ends/listeners.ts', 'createEndListeners'), /(\w+Listener)\(parts/g)
  t.strictSame(listed.sort(), written.sort())
  t.ok(written.length > 1)
})

t.test('all that an exchange may have taken is given back at its end', async t => {
  const written = exported(/^export (?:const|function) (release\w+)\b/gm)
  const listed = found(declared(pipeline, 'reservations'), /^ {2}(release\w+),$/gm)
  t.strictSame(listed.sort(), written.sort())
  t.ok(written.length > 1)
})

t.test('the steps are those that docs/contributing.md names, in its order', async t => {
  const [before = '', after = ''] = declared(pipeline, 'steps').split('...outbound')
  const named = (text: string) => found(text, /\{ name: '([^']+)'/g)
  const steps = [...named(before), ...named(declared(pipeline, 'outbound')), ...named(after)]
  const [, list = ''] = /The steps of a request: ([\s\S]*?)\./.exec(read('docs/contributing.md')) ?? []
  t.strictSame(found(list.replaceAll('\n', ' '), /`([^`]+)`/g), steps)
  t.equal(new Set(steps).size, steps.length, 'each has a name of its own')
})
