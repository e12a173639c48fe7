/** Threat T24 of SECURITY.md. */
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { BodyView, noBody } from '../../../src/policy/request/body.ts'
import { LongNumber } from '../../../src/policy/values/numbers.ts'
import { missing, unreadable } from '../../../src/policy/values/truth.ts'
import { truthOf } from '../../fixtures/rulebook.ts'

interface Shape {
  readonly type?: string
  readonly charset?: string
  readonly encoding?: string
  readonly complete?: boolean
}

function body(content: string | Uint8Array, shape: Shape = {}): BodyView {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  const { type: mediaType = 'application/json', charset = '', encoding = '', complete = true } = shape
  return new BodyView({ bytes, complete }, { mediaType, charset, encoding })
}

t.test('JSON is read by its media type', async t => {
  for (const type of ['application/json', 'application/vnd.api+json', 'text/json']) {
    t.strictSame(body('{"a":[1,null]}', { type }).value, { a: [1, null] }, type)
  }
  t.equal(body('{"a":1}').kind, 'json')
  t.equal(body('{"a":1}').text, '{"a":1}')
})

t.test('JSON under another type is text, so that rules on its fields cannot be evaluated', async t => {
  for (const type of ['', 'text/plain', 'application/octet-stream']) {
    const view = body('{"a":1}', { type })
    t.equal(view.kind, 'text', type)
    t.equal(view.value, unreadable, type)
    t.equal(view.text, '{"a":1}', type)
  }
})

t.test('what two parsers could read differently is invalid', async t => {
  const hostile: Record<string, string | Uint8Array> = {
    'duplicate key': '{"a":1,"a":2}',
    'duplicate key, escaped': '{"a":1,"\\u0061":2}',
    'duplicate key, deep': '[{"x":{"a":1,"b":{"c":1},"a":{}}}]',
    'byte order mark': '\ufeff{"a":1}',
    'UTF-16': Buffer.from('{"a":1}', 'utf16le'),
    'too many values': `[${'0,'.repeat(100_000)}0]`,
    'invalid UTF-8': Uint8Array.of(0x22, 0xff, 0x22),
    'overlong UTF-8': Uint8Array.of(0x22, 0xc0, 0xaf, 0x22),
    'trailing text': '{"a":1} x',
    'single quotes': "{'a':1}",
    comment: '{"a":1 /* x */}',
    NaN: '{"a":NaN}',
    'empty text': ' ',
  }
  for (const [name, content] of Object.entries(hostile)) {
    const view = body(content)
    t.equal(view.kind, 'invalid', name)
    t.equal(view.value, unreadable, name)
  }
  t.equal(body('{"a":1}', { charset: 'utf-16' }).kind, 'invalid')
  t.match(body('{"a":1,"a":2}').problem, 'duplicate keys')
})

t.test('keys may repeat in different objects, and look like the prototype', async t => {
  const text = '{"a":{"k":":"},"b":{"k":[{"k":1}]},"__proto__":{"x":1},"constructor":2}'
  const view = body(text)
  t.equal(view.kind, 'json')
  t.ok(Object.hasOwn(view.value as object, '__proto__'))
  t.equal((Object.prototype as Record<string, unknown>)['x'], undefined)
})

t.test('nesting over 64 levels is not read', async t => {
  t.equal(body('['.repeat(64) + ']'.repeat(64)).kind, 'json')
  t.equal(body('['.repeat(65) + ']'.repeat(65)).kind, 'invalid')
  t.equal(body('['.repeat(500_000)).kind, 'invalid')
  t.equal(body(`{"a":"${'['.repeat(100)}"}`).kind, 'json', 'brackets in a text do not nest')
})

t.test('numbers that a double cannot hold are kept', async t => {
  const view = body('{"a":9007199254740993,"b":1e400,"c":1.5,"d":"9007199254740993"}')
  t.equal(view.kind, 'json')
  t.ok(view.makeExact())
  const { value } = view
  t.match(value, { a: LongNumber, b: LongNumber, c: 1.5, d: '9007199254740993' })
  t.equal(String((value as { a: unknown }).a), '9007199254740993')
})

t.test('a rule compares the number that was sent, wherever in the body it stands', async t => {
  const sent = '9007199254740993'
  const rows: [string, string][] = [
    ['input.body.a', `{"a":${sent}}`],
    ['input.body.a', `{"a":[1,${sent}]}`],
    ['input.body[*].a', `[{"a":1},{"a":${sent}}]`],
    ['input.body[*].a', `[{"a":[${sent}]}]`],
    ['mcp.arguments.n', `[{"jsonrpc":"2.0","method":"tools/call","params":{"arguments":{"n":${sent}}}}]`],
    ['llm.maxTokens', `{"max_tokens":${sent}}`],
  ]
  for (const [field, body] of rows) {
    const request = { method: 'POST', url: 'https://a.example/', headers: { 'content-type': 'application/json' }, body }
    t.equal(truthOf({ field, operator: 'eq', value: sent }, { request }), 'T', body)
    t.equal(truthOf({ field, operator: 'eq', value: '9007199254740992' }, { request }), 'F', body)
  }
})

t.test('a form gives its fields, repeated ones as lists', async t => {
  const form = (text: string) => body(text, { type: 'application/x-www-form-urlencoded' })
  t.strictSame({ ...(form('a=1&b=x+y&a=%C3%A9&?c=').value as object) }, { a: ['1', 'é'], b: 'x y', '?c': '' })
  t.equal(form('a=1').kind, 'form')
  t.equal(form('a=%zz').kind, 'invalid')
  t.equal(form('a=%ff').kind, 'invalid')
  t.equal(form('a=1\0').kind, 'invalid')
  t.equal(form('a&'.repeat(99_999)).kind, 'form')
  t.match(form('a&'.repeat(100_001)).problem, 'more than 100000 values')
})

t.test('other bodies have a kind', async t => {
  t.equal(body('', {}).kind, 'none')
  t.equal(body('x', { type: 'multipart/form-data' }).kind, 'multipart')
  t.equal(body(Uint8Array.of(0, 1, 2), { type: '' }).kind, 'binary')
  t.equal(body(Uint8Array.of(0xff, 0xfe), { type: 'image/png' }).kind, 'binary')
  t.equal(body('{"a":', { complete: false }).kind, 'truncated')
  t.equal(body(gzipSync('{"a":1}'), { encoding: 'gzip' }).kind, 'encoded')
  t.equal(body('{"a":1}', { encoding: 'identity' }).kind, 'json')
})

t.test('text that is not there or cannot be decoded is said so', async t => {
  t.equal(noBody.text, missing)
  t.equal(noBody.value, missing)
  t.equal(body('abc', { complete: false }).text, unreadable)
  t.equal(body('abc', { encoding: 'br' }).text, unreadable)
  t.equal(body(Uint8Array.of(0xff), { type: 'text/plain' }).text, unreadable)
  t.equal(body(Uint8Array.of(0xe9), { type: 'text/plain', charset: 'iso-8859-1' }).text, 'é')
  t.equal(body('{broken').text, '{broken', 'a text that is no JSON is still a text')
})

t.test('text that others may read in another encoding is unreadable', async t => {
  const utf16 = Buffer.from('{"cmd":"rm"}', 'utf16le')
  const rows: [string, Uint8Array, string][] = [
    ['UTF-16, little end first', utf16, ''],
    ['UTF-16, big end first', Buffer.from(utf16).swap16(), ''],
    ['UTF-16 with a byte order mark', Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]), ''],
    ['UTF-16 that is said to be Latin-1', utf16, 'iso-8859-1'],
    ['UTF-32', Buffer.from([...'{"cmd":1}'].flatMap(letter => [0, 0, 0, letter.charCodeAt(0)])), ''],
    ['UTF-8 with a byte order mark', Buffer.from('\ufeff{"cmd":"rm"}'), ''],
    ['UTF-7', Buffer.from('+AHs-'), 'utf-7'],
    ['a character set that is said twice', Buffer.from('rm'), 'utf-8,utf-16'],
  ]
  for (const [name, content, charset] of rows) {
    for (const type of ['text/plain', '', 'application/json', 'multipart/form-data']) {
      t.equal(body(content, { type, charset }).text, unreadable, `${name}, ${type}`)
    }
  }
  t.equal(body('a \u0001 b', { type: 'text/plain' }).text, 'a \u0001 b')
})

t.test('a request that names two character sets has a body that cannot be read', async t => {
  const given = (type: string | string[]) => ({
    request: { method: 'POST', url: 'https://a.example/', headers: { 'content-type': type }, body: 'rm -rf' },
  })
  const condition = { field: 'input.bodyText', operator: 'contains', value: 'rm' }
  t.equal(truthOf(condition, given('text/plain; charset=utf-8')), 'T')
  t.equal(truthOf(condition, given('text/plain; charset="UTF-8"; charset=utf-8')), 'T')
  t.equal(truthOf(condition, given('text/plain; charset=utf-8; charset=utf-16')), 'E')
  t.equal(truthOf(condition, given(['text/plain; charset=utf-8', 'text/plain; charset=utf-16'])), 'E')
})

t.test('every reason that a body is unreadable has words', async t => {
  t.match(body('a', { complete: false }).problem, 'longer than what is held')
  t.match(body('a', { encoding: 'gzip' }).problem, 'Content-Encoding')
  t.match(body('a', { type: 'text/plain' }).problem, 'the body is text')
  t.match(body('{').problem, 'not valid JSON')
  t.match(body('\ufeff{}').problem, 'not plain UTF-8')
  t.match(body('a=%zz', { type: 'application/x-www-form-urlencoded' }).problem, 'not a valid form')
})

t.test('secrets are looked for in what was held, whatever its kind', async t => {
  const key = 'AKIAIOSFODNN7EXAMPLE'
  t.equal(body(`{"k":"${key}"`, { complete: false }).secret, 'aws-access-key')
  t.equal(body(Buffer.concat([Buffer.from([0xff]), Buffer.from(` ${key}`)])).secret, 'aws-access-key')
  t.equal(body('{}').secret, undefined)
  t.equal(body('mail a@b.example', { type: '' }).pii, 'email')
})
