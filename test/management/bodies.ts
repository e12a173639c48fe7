/** Threat T38 of SECURITY.md. */

import t from 'tap'
import { openApi, readOperations } from '../../src/api/openapi.ts'
import { startControl } from '../fixtures/control.ts'

const { call, admin, registry, book, agent, suspend, upstream } = await startControl(t)
await book.create({ name: 'p' }, { actor: 'x', requestId: null })
const bot = await agent()
const hitlId = await suspend(bot)
const values: Record<string, string> = { agentId: bot.id, name: 'p', id: hitlId }
const token = admin.token

/** Bodies that no operation takes, with the refusal each gets. */
const bad: [string, string | Uint8Array, number][] = [
  ['cut off', '{', 400],
  ['not JSON', 'name=x', 400],
  ['null', 'null', 400],
  ['a list', '[]', 400],
  ['text', '"x"', 400],
  ['a number', '123', 400],
  ['two values', '{}{}', 400],
  ['a trailing comma', '{"a":1,}', 400],
  ['a comment', '{/**/}', 400],
  ['single quotes', "{'a':1}", 400],
  ['NaN', '{"a":NaN}', 400],
  ['a name twice', '{"name":"a","name":"b"}', 400],
  ['a name twice, spelled differently', '{"name":"a","n\\u0061me":"b"}', 400],
  ['a byte order mark', '\ufeff{}', 400],
  ['a lone byte', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 400],
  ['a NUL', '{"a":1}\u0000', 400],
  ['an unknown field', '{"no-such-field":1}', 400],
  ['10,000 levels', `${'['.repeat(10_000)}${']'.repeat(10_000)}`, 400],
  ['10,000 levels of objects', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`, 400],
  ['100,000 open brackets', '['.repeat(100_000), 400],
  ['more than 1 MiB', `{"name":"${'x'.repeat(1_048_576)}"}`, 413],
]

/** Slack signs the bytes of a form: test/proxy/slack.ts. */
const takesForm = 'takeSlackClick'
const operations = readOperations(openApi).filter(({ id, body }) => body !== undefined && id !== takesForm)

for (const { id, method, path, body } of operations) {
  const at = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name]!)

  t.test(`${id} refuses a body that it does not take, and does nothing`, async t => {
    for (const [what, text, status] of bad) {
      const answer = await call(method, at, {
        token,
        body: text as string,
        headers: { 'content-type': 'application/json' },
      })
      t.equal(answer.status, status, what)
      t.match(answer.headers.get('content-type'), 'application/problem+json')
      t.match(answer.json, { status, code: answer.headers.get('gateway-error'), requestId: /^request-/ })
    }
  })

  t.test(`${id} takes application/json alone`, async t => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', 'application/json-seq'])
      t.match(
        await call(method, at, { token, body: '{}', headers: { 'content-type': type } }),
        { status: 415, json: { code: 'unsupported_media_type' } },
        type,
      )
    const encoded = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    t.match(await call(method, at, { token, body: '{}', headers: encoded }), { status: 415 })
  })

  if (body?.required)
    t.test(`${id} needs a body`, async t => {
      t.match(await call(method, at, { token }), { status: 400, json: { code: 'invalid_body' } })
    })
}

t.test('after all of this nothing was changed', async t => {
  t.equal(registry.values().length, 2)
  t.match(registry.get(bot.id), { policyName: null, roles: ['agent'] })
  t.strictSame(
    book.list().map(({ document }) => document.name),
    ['p'],
  )
  t.match(await call('GET', `/hitl/${hitlId}`, { token }), { json: { status: 'Pending' } })
  t.equal(upstream.sent.length, 0)
})
