import t from 'tap'
import { prefersJson } from '../../src/http/media-types.ts'

const cases: readonly (readonly [string, boolean])[] = [
  ['application/json', true],
  ['Application/JSON; charset=utf-8', true],
  ['application/problem+json', true],
  ['application/json, text/plain, */*', true],
  ['text/plain;q=0.5, application/json;q=0.5', true],
  ['text/plain, application/json;q=0.9', false],
  ['text/*, application/json;q=0.9', false],
  ['application/json;q=0', false],
  ['application/json ; q = 0.0', false],
  ['*/*', false],
  ['application/*', false],
  ['text/html, */*;q=0.8', false],
  ['application/jsonp', false],
  ['', false],
]

for (const [accept, expected] of cases) {
  t.test(`Accept: ${accept} ${expected ? 'prefers' : 'does not prefer'} JSON`, async t => {
    t.equal(prefersJson([accept]), expected)
  })
}

t.test('several fields count as one list', async t => {
  t.equal(prefersJson(['text/plain;q=0.1', 'application/json']), true)
  t.equal(prefersJson([]), false)
  t.equal(prefersJson([], true), true)
  t.equal(prefersJson(['*/*'], true), true)
  t.equal(prefersJson(['text/plain, */*;q=0.1'], true), false)
})
