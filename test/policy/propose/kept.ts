/** What is recorded of a request, and that nothing secret is in it. Threat T80. */
import t from 'tap'
import { keptOf } from '../../../src/policy/propose/kept.ts'
import type { RequestDescription } from '../../../src/policy/request/describe.ts'
import { described } from '../../fixtures/rulebook.ts'

const kept = (request: RequestDescription['request'], isWhole = true) => keptOf(described({ request }), isWhole)
const reading = (uri: string) => ({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri } })
const github = `ghp_${'aB3'.repeat(12)}`

t.test('ids in a path are classes, and their values are kept beside them', async t => {
  const uuid = '7d444840-9dc0-41d1-b245-5ffdce74fad2'
  const found = kept({ url: `https://api.example/v1/users/17/orders/${uuid}/9dc041d1b2455ffd?page=2&q=text` })
  t.strictSame(found?.shape, {
    ...{ method: 'GET', origin: 'https://api.example' },
    path: ['v1', 'users', ['int', 0], 'orders', ['uuid', 0], ['hex', 16]],
    facts: [['input.bodyInfo.size', '0']],
    names: [['input.queryString', ['page', 'q']]],
    unfit: null,
  })
  t.strictSame(found?.values, [['17'], [uuid], ['9dc041d1b2455ffd']])
})

t.test('of a body its names are kept, and numbers and plain texts apart from the shape', async t => {
  const found = kept({ method: 'POST', url: 'https://api.example/v1/items', body: { name: 'a value', amount: 17 } })
  t.strictSame(found?.shape.names, [
    ['input.queryString', []],
    ['input.body.@keys', ['amount', 'name']],
  ])
  t.notMatch(JSON.stringify(found?.shape), /a value|17/)
  t.strictSame(found?.fields, { 'input.body.amount': { min: 17, max: 17 } })
  t.match(kept({ method: 'POST', url: 'https://api.example/', body: {} }, false)?.shape, {
    unfit: 'a body that was not recorded',
  })
})

t.test('a path that servers read in different ways is kept as it was sent, without ids and secrets', async t => {
  const fact = ['input.rawPath', '/@types%2fnode']
  t.match(kept({ url: 'https://api.example/@types%2fnode' })?.shape, {
    path: ['@types%2fnode'],
    facts: [fact],
    unfit: null,
  })
  const withId = kept({ url: 'https://api.example/a;b/17' })
  t.match(withId?.shape, { path: ['a;b', ['int', 0]], facts: [], unfit: /with ids/ })
  for (const path of [
    `x%2f${github}`,
    'reset-token%2f7d444840-9dc0-41d1-b245-5ffdce74fad2',
    github.replace('g', '%67'),
  ])
    for (const found of [
      kept({ url: `https://api.example/${path}` }),
      kept({ url: `https://api.example/${path}?a;b` }),
      kept({ method: 'POST', url: `https://api.example/${path}`, body: {} }, false),
    ])
      t.match(found?.shape, { path: [['secret', 0]], facts: [], unfit: /secret/ }, path)
})

t.test('what a detector finds, and what stands after the name of a secret, is in no shape', async t => {
  const hidden = [
    { url: `https://api.example/v1/${github}/x` },
    { url: `https://api.example/v1/x?${github}=1` },
    { url: `https://api.example/v1/x?q=${github}` },
    { url: 'https://api.example/v1/x?to=jane.doe@example.com' },
    { url: 'https://api.example/v1/reset-token/9dc041d1b2455ffd' },
    { url: 'https://api.example/users/jane.doe@example.com/mails' },
    { url: 'https://api.example/users/jane.doe%40example.com/mails' },
    { url: 'https://api.example/users%2fjane.doe%2540example.com' },
    { url: 'https://api.example/cards/4111%2D1111%2D1111%2D1111' },
    { url: 'https://api.example/v1/x?jane.doe%40example.com=1' },
    { method: 'POST', url: 'https://api.example/v1/x', body: { 'jane.doe@example.com': 1 } },
    { method: 'POST', url: 'https://api.example/mcp', body: reading('mail://jane.doe%40example.com') },
    { method: 'POST', url: 'https://api.example/mcp', body: reading(`file:///${github.replace('_', '%5F')}`) },
    { url: `https://api.example/v1/x;api_key=9dc041d1b2455ffd/y` },
    { method: 'POST', url: 'https://api.example/v1/x', body: { [github]: 1 } },
    { method: 'POST', url: 'https://api.example/v1/x', body: { field: github } },
    { method: 'POST', url: 'https://api.example/v1/x', body: { to: 'jane.doe@example.com' } },
    { url: 'https://api.example/v1/x', headers: { 'X-Api-Key': github, Cookie: 'sid=9dc041d1b2455ffd' } },
  ]
  for (const request of hidden) {
    const found = kept(request)
    t.ok(found)
    t.notMatch(JSON.stringify(found), /ghp[%_]|jane|4111|9dc041d1b2455ffd/, request.url)
  }
  t.equal(kept({ url: `https://${github.toLowerCase().replace('_', '-')}.example/` })?.shape.unfit, null)
  t.equal(kept({ url: 'https://akia.example/v1/x' })?.shape.unfit, null, 'an ordinary name')
})

t.test('a path or a list of names that is too long is not kept', async t => {
  const long = kept({ url: `https://api.example/${'a/'.repeat(100)}` })
  t.match(long, { shape: { path: [], unfit: 'more than is recorded' } })
  const names = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`name-${n}`, 1]))
  t.match(kept({ method: 'POST', url: 'https://api.example/x', body: names }), { shape: { path: [], names: [] } })
})
