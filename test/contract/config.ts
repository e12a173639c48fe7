import { readFileSync } from 'node:fs'
import t from 'tap'
import { formatProblem } from '../../src/config/given.ts'
import { loadConfig } from '../../src/config/load.ts'
import { schema } from '../../src/config/schema.ts'
import { settingsOf } from '../../src/config/setting.ts'
import { schemaFile, schemaText } from '../fixtures/schemas.ts'
import { settingsYaml, tableFile, withTable, yamlFile } from '../fixtures/settings.ts'

const rewrite = 'Rewrite it with: node test/fixtures/settings.ts'

t.test('gateway.yaml lists every setting of the schema with its default', async t => {
  t.equal(readFileSync(yamlFile, 'utf8'), settingsYaml(), rewrite)
})

t.test('the table of docs/settings.md is that of the schema', async t => {
  const page = readFileSync(tableFile, 'utf8')
  t.equal(page, withTable(page), rewrite)
})

t.test('gateway.schema.json is that of the schema', async t => {
  t.equal(readFileSync(schemaFile('gateway.schema.json'), 'utf8'), schemaText('gateway.schema.json'), rewrite)
})

t.test('gateway.yaml is valid as shipped, and with every default uncommented', async t => {
  const text = readFileSync(yamlFile, 'utf8')
  const shipped = loadConfig({ file: { path: 'gateway.yaml', text }, env: {} })
  t.strictSame('problems' in shipped ? shipped.problems.map(formatProblem) : [], [])

  const uncommented = text.replace(/^( *)#([\w-]+: .+)$/gm, '$1$2')
  const all = loadConfig({ file: { path: 'gateway.yaml', text: uncommented }, env: {} })
  const configOf = (loaded: typeof all) => ('problems' in loaded ? loaded.problems.map(formatProblem) : loaded.config)
  t.strictSame(configOf(all), configOf(shipped), 'what is said to be the default is the default')
})

t.test('every setting says what it means in one sentence and has a default that it would accept', async t => {
  for (const [path, setting] of settingsOf(schema)) {
    const name = path.join(':')
    t.match(setting.meaning, /^[^\n]+\.$/, name)
    if (typeof setting.default !== 'number') continue
    t.ok(setting.default >= (setting.min ?? 0) && setting.default <= (setting.max ?? Infinity), name)
  }
})
