import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parseYaml } from '../../src/config/yaml.ts'
import { ruleWarnings } from '../../src/policy/language/model.ts'
import { lintPolicy } from '../../src/policy/lint/lint.ts'
import { policyOf } from '../fixtures/rulebook.ts'

const page = readFileSync(fileURLToPath(new URL('../../docs/warnings.md', import.meta.url)), 'utf8')
const [introduction = '', ...sections] = page.split(/^## /m)
const blocks = (text: string) => Array.from(text.matchAll(/^```yaml\n([\s\S]*?)^```/gm), ([, code = '']) => code)

const aMonthAndMore = {
  now: 40 * 86_400_000,
  unchangedSince: 0,
  budgets: new Set(['agents-daily']),
  credentials: new Set(['shop']),
}

function reportOf(block: string) {
  const yaml = parseYaml(block)
  if ('problems' in yaml) throw new TypeError(JSON.stringify(yaml.problems))
  const document = Array.isArray(yaml.value) ? { name: 'example', rules: yaml.value } : yaml.value
  return lintPolicy(policyOf(document), aMonthAndMore)
}

const codesOf = (block: string) => reportOf(block).warnings.map(({ code }) => code)

t.test('docs/warnings.md has a section for each warning', async t => {
  const codes = sections.map(section => section.split('\n')[0])
  t.strictSame(codes.sort(), [...ruleWarnings, 'W_UNUSED_SILENCE'].sort())
})

t.test('the first example of each warning has it, and the second has none', async t => {
  for (const section of sections) {
    const [code = ''] = section.split('\n')
    const [wrong = '', right = '', ...more] = blocks(section)
    t.ok((codesOf(wrong) as string[]).includes(code), `${code} ${codesOf(wrong)}`)
    t.strictSame(codesOf(right), [], code)
    t.strictSame(more, [], code)
  }
})

t.test('the silenced warning of the introduction is reported with its reason, and not as a warning', async t => {
  const [block = ''] = blocks(introduction)
  t.match(reportOf(block), { warnings: [], silenced: [{ code: 'W_ANY_ORIGIN', reason: /plain http/ }] })
})
