/** Threat T36 of SECURITY.md. */

import t from 'tap'
import { escapeDeceptive } from '../../src/base/deceptive.ts'
import { redactText } from '../../src/base/redact.ts'
import { bodyEncodingOf, redactHeaders } from '../../src/hitl/suspend.ts'

const secretFields = [
  'Authorization',
  'Proxy-Authorization',
  'Cookie',
  'Set-Cookie',
  'X-Api-Key',
  'Api-Key',
  'X-Auth-Token',
  'X-Amz-Security-Token',
  'X-Goog-Iam-Authorization-Token',
  'X-Goog-Anything',
  'X-Vault-Token',
  'Client-Secret',
  'Ocp-Apim-Subscription-Key',
  'X-Db-Password',
  'X_API_KEY',
  'x.api.key',
  'xApiKey',
]

t.test('a field that carries a credential is redacted, however its name is spelled', async t => {
  for (const name of secretFields) {
    t.strictSame(redactHeaders([name, 'canary'], 'Gateway-Authorization'), { [name.toLowerCase()]: '[REDACTED]' }, name)
  }
})

t.test('a field that carries none is shown, with its lines joined', async t => {
  const shown = redactHeaders(['Accept', 'text/html', 'X-Monkey', 'a', 'accept', 'text/css'], 'Gateway-Authorization')
  t.strictSame(shown, { accept: 'text/html, text/css', 'x-monkey': 'a' })
})

t.test('two lines of a secret field are one mark', async t => {
  t.strictSame(redactHeaders(['Cookie', 'a', 'Cookie', 'b'], 'X'), { cookie: '[REDACTED]' })
})

t.test('the token field of the gateway is redacted by whatever name it has', async t => {
  t.strictSame(redactHeaders(['X-Agent', 'canary'], 'x-agent'), { 'x-agent': '[REDACTED]' })
})

t.test('a credential under an innocent name is redacted by its shape', async t => {
  const shown = redactHeaders(['X-Original', 'Bearer canary', 'Referer', 'https://a/?token=canary'], 'X')
  t.strictSame(shown, { 'x-original': '[REDACTED]', referer: 'https://a/?token=[REDACTED]' })
})

t.test('a field named __proto__ is a field like any other', async t => {
  const shown = redactHeaders(['__proto__', 'x'], 'X')
  t.equal(Object.getOwnPropertyDescriptor(shown, '__proto__')?.value, 'x')
  t.equal(Object.getPrototypeOf(shown), Object.prototype)
})

t.test('a query parameter that carries a credential is redacted, and nothing else changes', async t => {
  const url = 'https://a.example/p%2F?x=1&access_token=canary&X-Amz-Signature=canary&apiKey=canary&%74oken=canary&y'
  t.equal(
    redactText(url),
    'https://a.example/p%2F?x=1&access_token=[REDACTED]&X-Amz-Signature=[REDACTED]&apiKey=[REDACTED]&%74oken=[REDACTED]&y',
  )
  t.equal(
    redactText('https://a/?b=2;password=canary&c=%zz#d?token=e'),
    'https://a/?b=2;password=[REDACTED]&c=%zz#d?token=[REDACTED]',
  )
  t.equal(redactText('https://a/?%zz=1&monkey=2'), 'https://a/?%zz=1&monkey=2')
  t.equal(redactText('https://a/;jsessionid=x/b'), 'https://a/;jsessionid=[REDACTED]')
})

t.test('userinfo of a URL is redacted', async t => {
  t.equal(redactText('https://me:canary@a.example/?q=b@c'), 'https://[REDACTED]@a.example/?q=b@c')
  t.equal(redactText('https://a.example/x@y'), 'https://a.example/x@y')
})

t.test('a body is shown as text when it is UTF-8 and as base64 when not', async t => {
  t.equal(bodyEncodingOf(Buffer.from('grüße 🎈')), 'utf8')
  t.equal(bodyEncodingOf(new Uint8Array([0xff, 0x00, 0x80])), 'base64')
  t.equal(bodyEncodingOf(new Uint8Array()), 'utf8')
})

t.test('characters that hide or reorder text are written out', async t => {
  t.equal(
    escapeDeceptive('pay\u202Eexe\r\n\u001b[2J\u200b\ufeff\u2028\ud800'),
    'pay\\u{202e}exe\\u{d}\\u{a}\\u{1b}[2J\\u{200b}\\u{feff}\\u{2028}\\u{d800}',
  )
  t.equal(escapeDeceptive('plain grüße 日本 🎈'), 'plain grüße 日本 🎈')
})
