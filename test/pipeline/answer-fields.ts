/** Threat T62 of SECURITY.md. */
import fc from 'fast-check'
import { parseTarget, type Target } from '../../src/base/target.ts'
import { createVirtualHosts, type Links } from '../../src/http/virtual-hosts.ts'
import { type Answered, answerFields } from '../../src/pipeline/answer-fields.ts'
import { runs } from '../fixtures/runs.ts'
import t from '../fixtures/tap.ts'

function targetOf(url: string): Target {
  const target = parseTarget(url)
  if (typeof target === 'string') throw new Error(target)
  return target
}

const rewriting: Links = {
  redirects: 'Rewrite',
  cookies: 'Scope',
  publicUrl: undefined,
  scheme: 'http',
  hosts: undefined,
}
const target: Answered = {
  target: targetOf('https://api.example.com/v1/items/7?x=1'),
  addressing: 'url',
  fields: { host: 'gateway.test' },
  tokenNames: [],
}

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

const pieces = fc.constantFrom(
  ...['http', 'https', ':', '/', '\\', '//', '/.//', '@', '..', '.', 'a.example', 'api.example.com', '#', '?', '\t'],
  '%2f',
)
const references = fc.oneof(
  fc.array(pieces, { maxLength: 8 }).map(parts => parts.join('')),
  fc.string(),
  fc.webUrl(),
)

t.test('whatever Location says, a client that follows it calls the gateway', async () => {
  fc.assert(
    fc.property(references, given => {
      const [name, value = ''] = answerFields(['Location', given], target, rewriting)
      if (name !== 'Location') return true
      const followed = new URL(value, 'http://gateway.test/proxy/https://api.example.com/v1/items/7')
      return followed.host === 'gateway.test' && followed.pathname.startsWith('/proxy/http')
    }),
    { numRuns: runs(5_000) },
  )
})

const hosts = createVirtualHosts([
  { Host: 'api.gateway.test', Upstream: 'https://api.example.com' },
  { Host: 'other.gateway.test', Upstream: 'http://a.example' },
])
const onHost: Answered = {
  ...target,
  addressing: hosts?.find('api.gateway.test') ?? 'url',
  fields: { host: 'api.gateway.test:7080' },
}

t.test('whatever Location says on a virtual host, a client that follows it calls the gateway', async () => {
  const publicUrl = 'http://gateway.test'
  const known = new Set(['api.gateway.test:7080', 'other.gateway.test:7080', 'gateway.test'])
  const links = { ...rewriting, hosts, publicUrl }
  fc.assert(
    fc.property(references, given => {
      const [name, value = ''] = answerFields(['Location', given], onHost, links)
      return name !== 'Location' || known.has(new URL(value, 'http://api.gateway.test:7080/v1/items/7').host)
    }),
    { numRuns: runs(5_000) },
  )
})

t.test('without a public URL, what is on no virtual host leads nowhere', async t => {
  const links = { ...rewriting, hosts }
  const given = 'https://third.example/a'
  t.strictSame(answerFields(['Location', given], onHost, links), ['Gateway-Upstream-Location', given])
  const [, secure] = answerFields(['Location', 'http://a.example/b'], onHost, { ...links, scheme: 'https' })
  t.equal(secure, 'https://other.gateway.test:7080/b')
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
  t.strictSame(answerFields(fields, target, { ...rewriting, redirects: 'Pass', cookies: 'Pass' }), fields)
})
