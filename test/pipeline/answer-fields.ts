/** Threat T62 of SECURITY.md. */
import fc from 'fast-check'
import { parseTarget, type Target } from '../../src/base/target.ts'
import { answerFields } from '../../src/pipeline/answer-fields.ts'
import { runs } from '../fixtures/runs.ts'
import t from '../fixtures/tap.ts'

function targetOf(url: string): Target {
  const target = parseTarget(url)
  if (typeof target === 'string') throw new Error(target)
  return target
}

const rewriting = { Redirects: 'Rewrite', Cookies: 'Scope' } as const
const target = targetOf('https://api.example.com/v1/items/7?x=1')

const locations: readonly (readonly [string, string])[] = [
  ['https://other.example/a?b=c', '/proxy/https://other.example/a?b=c'],
  ['/login', '/proxy/https://api.example.com/login'],
  ['next', '/proxy/https://api.example.com/v1/items/next'],
  ['../8', '/proxy/https://api.example.com/v1/8'],
  ['?page=2', '/proxy/https://api.example.com/v1/items/7?page=2'],
  ['//other.example/a', '/proxy/https://other.example/a'],
  ['/\\other.example/a', '/proxy/https://other.example/a'],
  ['http://api.example.com', '/proxy/http://api.example.com/'],
  ['HTTPS://API.Example.COM:443/A', '/proxy/https://api.example.com/A'],
  ['https://other.example:8443/#part', '/proxy/https://other.example:8443/#part'],
  ['/caf\u00c3\u00a9', '/proxy/https://api.example.com/caf%C3%A9'],
]

t.test('a redirect points back at the gateway, and the original stays readable', async t => {
  for (const name of ['Location', 'content-location']) {
    for (const [given, expected] of locations) {
      const fields = answerFields([name, given, 'X-Other', '1'], target, rewriting)
      t.strictSame(fields, [name, expected, 'X-Other', '1', `Gateway-Upstream-${name}`, given], given)
    }
  }
})

t.test('a reference that is no http URL leads nowhere', async t => {
  for (const given of ['mailto:a@example.com', 'javascript:alert(1)', 'https://', 'http://[::1', 'ftp://a.example/']) {
    t.strictSame(answerFields(['Location', given], target, rewriting), ['Gateway-Upstream-Location', given], given)
  }
})

t.test('whatever Location says, a client that follows it calls the gateway', async () => {
  const part = fc.constantFrom(
    'http',
    'https',
    ':',
    '/',
    '\\',
    '//',
    '@',
    '..',
    '.',
    'a.example',
    '#',
    '?',
    '\t',
    '%2f',
  )
  const text = fc.oneof(
    fc.array(part, { maxLength: 8 }).map(parts => parts.join('')),
    fc.string(),
    fc.webUrl(),
  )
  fc.assert(
    fc.property(text, given => {
      const [name, value = ''] = answerFields(['Location', given], target, rewriting)
      if (name !== 'Location') return true
      const followed = new URL(value, 'http://gateway.test/proxy/https://api.example.com/v1/items/7')
      return followed.host === 'gateway.test' && followed.pathname.startsWith('/proxy/http')
    }),
    { numRuns: runs(5_000) },
  )
})

const cookies: readonly (readonly [string, string])[] = [
  ['a=1', 'a=1'],
  ['a=1; Path=/', 'a=1; Path=/proxy/https://api.example.com'],
  ['a=1; path=/v1; Secure', 'a=1; Secure; Path=/proxy/https://api.example.com/v1'],
  ['a=1; Domain=example.com; HttpOnly', 'a=1; HttpOnly'],
  ['a=1;domain=.example.com;Path=/;Max-Age=5', 'a=1;Max-Age=5; Path=/proxy/https://api.example.com'],
  ['a=1; Path=/x; Path=/y', 'a=1; Path=/proxy/https://api.example.com/y'],
  ['a=1; Path=relative', 'a=1'],
]

t.test('a cookie belongs to its upstream', async t => {
  for (const [given, expected] of cookies) {
    t.strictSame(answerFields(['Set-Cookie', given], target, rewriting), ['Set-Cookie', expected], given)
  }
})

t.test('Pass leaves both as they came', async t => {
  const fields = ['Location', '/login', 'Set-Cookie', 'a=1; Path=/; Domain=example.com']
  t.strictSame(answerFields(fields, target, { Redirects: 'Pass', Cookies: 'Pass' }), fields)
})
