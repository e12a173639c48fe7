/** Threat T62 of SECURITY.md. */
import fc from 'fast-check'
import t from 'tap'
import { parseTarget, type Target } from '../../../src/base/target.ts'
import { byPath, byUrl } from '../../../src/http/addressing.ts'
import { fieldName } from '../../../src/http/names.ts'
import { createVirtualHosts, type PublicNames } from '../../../src/http/virtual-hosts.ts'
import type { LinkedAnswer } from '../../../src/pipeline/links.ts'
import { answerFields } from '../../../src/pipeline/outbound/answer-fields.ts'
import { runs } from '../../fixtures/runs.ts'

function targetOf(url: string): Target {
  const target = parseTarget(url)
  if (typeof target === 'string') throw new Error(target)
  return target
}

const target: LinkedAnswer = {
  target: targetOf('https://api.example.com/v1/items/7?x=1'),
  addressing: byUrl.plain,
  fields: { host: 'gateway.test', names: [] },
  tokenNames: [],
  credentials: undefined,
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
      const fields = answerFields([name, given, 'X-Other', '1'], target)
      t.strictSame(fields, [name, expected, 'X-Other', '1', `Gateway-Upstream-${name}`, given], given)
    }
  }
})

t.test('a reference that is no http URL leads nowhere', async t => {
  for (const given of ['mailto:a@example.com', 'javascript:alert(1)', 'https://', 'http://[::1', 'ftp://a.example/']) {
    t.strictSame(answerFields(['Location', given], target), ['Gateway-Upstream-Location', given], given)
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

t.test('whatever Location says, a client that follows it calls the gateway', async t => {
  fc.assert(
    fc.property(references, given => {
      const [name, value = ''] = answerFields(['Location', given], target)
      if (name !== 'Location') return true
      const followed = new URL(value, 'http://gateway.test/proxy/https://api.example.com/v1/items/7')
      return followed.host === 'gateway.test' && followed.pathname.startsWith('/proxy/http')
    }),
    { numRuns: runs(5_000) },
  )
  t.pass('holds')
})

const virtualHosts = [
  { Host: 'api.gateway.test', Upstream: 'https://api.example.com' },
  { Host: 'other.gateway.test', Upstream: 'http://a.example' },
]
const onHost = (names: Partial<PublicNames> = {}): LinkedAnswer => ({
  ...target,
  addressing:
    createVirtualHosts(virtualHosts, { publicUrl: undefined, scheme: 'http', ...names })?.find('api.gateway.test') ??
    byUrl.plain,
  fields: { host: 'api.gateway.test:7080', names: [] },
})

t.test('whatever Location says on a virtual host, a client that follows it calls the gateway', async t => {
  const exchange = onHost({ publicUrl: 'http://gateway.test' })
  const known = new Set(['api.gateway.test:7080', 'other.gateway.test:7080', 'gateway.test'])
  fc.assert(
    fc.property(references, given => {
      const [name, value = ''] = answerFields(['Location', given], exchange)
      return name !== 'Location' || known.has(new URL(value, 'http://api.gateway.test:7080/v1/items/7').host)
    }),
    { numRuns: runs(5_000) },
  )
  t.pass('holds')
})

t.test('without a public URL, what is on no virtual host leads nowhere', async t => {
  const given = 'https://third.example/a'
  t.strictSame(answerFields(['Location', given], onHost()), ['Gateway-Upstream-Location', given])
  const [, secure] = answerFields(['Location', 'http://a.example/b'], onHost({ scheme: 'https' }))
  t.equal(secure, 'https://other.gateway.test:7080/b')
})

const cookies: readonly (readonly [string, string])[] = [
  ['a=1', 'a=1; Path=/proxy/https://api.example.com/v1/items'],
  ['a=1; Path=/', 'a=1; Path=/proxy/https://api.example.com'],
  ['a=1; path=/v1; Secure', 'a=1; path=/proxy/https://api.example.com/v1; Secure'],
  ['a=1; Domain=example.com; HttpOnly', 'a=1; HttpOnly; Path=/proxy/https://api.example.com/v1/items'],
  ['a=1;domain=.example.com;Path=/;Max-Age=5', 'a=1;Path=/proxy/https://api.example.com;Max-Age=5'],
  ['a=1; Path=/x; Path=/y', 'a=1; Path=/proxy/https://api.example.com/x; Path=/proxy/https://api.example.com/y'],
  ['a=1; Path=relative', 'a=1; Path=/proxy/https://api.example.com/v1/items'],
  ['a=1; Path=/x; Path', 'a=1; Path=/proxy/https://api.example.com/x; Path=/proxy/https://api.example.com/v1/items'],
]

t.test('a cookie belongs to its upstream', async t => {
  for (const [given, expected] of cookies) {
    t.strictSame(answerFields(['Set-Cookie', given], target), ['Set-Cookie', expected], given)
  }
})

t.test('a cookie without a path belongs to the upstream, at its root too', async t => {
  const root = { ...target, target: targetOf('https://api.example.com/') }
  const fields = answerFields(['Set-Cookie', 'a=1'], root)
  t.strictSame(fields, ['Set-Cookie', 'a=1; Path=/proxy/https://api.example.com'])
})

t.test('a cookie of a virtual host keeps its bytes but for the domain', async t => {
  for (const cookie of ['a=1;path=/v1;  HttpOnly', 'a="x y"; Max-Age=5 ;Secure']) {
    t.strictSame(answerFields(['Set-Cookie', cookie], onHost()), ['Set-Cookie', cookie])
  }
  const given = 'a=1;path=/v1; DOMAIN = example.com;  HttpOnly'
  t.strictSame(answerFields(['Set-Cookie', given], onHost()), ['Set-Cookie', 'a=1;path=/v1;  HttpOnly'])
})

const linkFields: readonly (readonly [string, string | undefined])[] = [
  ['<https://other.example/a?page=2>; rel="next"', '</proxy/https://other.example/a?page=2>; rel="next"'],
  [
    '</a>;rel=next , <b>; rel="last, <x>"; title="\\""',
    '</proxy/https://api.example.com/a>;rel=next, </proxy/https://api.example.com/v1/items/b>; rel="last, <x>"; title="\\""',
  ],
  ['<mailto:a@b.example>; rel=author, <?p=2>; rel=next', '</proxy/https://api.example.com/v1/items/7?p=2>; rel=next'],
  ['<mailto:a@b.example>; rel=author', undefined],
  [', <a>, ,', '</proxy/https://api.example.com/v1/items/a>'],
  ['<a', undefined],
  ['a; rel=next', undefined],
  ['<a>; title="open', undefined],
  ['', undefined],
]

t.test('links lead through the gateway, each with its parameters', async t => {
  for (const [given, expected] of linkFields) {
    const fields = answerFields(['Link', given], target)
    const upstream = ['Gateway-Upstream-Link', given]
    t.strictSame(fields, expected === undefined ? upstream : ['Link', expected, ...upstream], given)
  }
})

const refreshFields: readonly (readonly [string, string | undefined])[] = [
  ['5', '5'],
  ['0; url=https://other.example/a', '0; url=/proxy/https://other.example/a'],
  ['0;URL="/a"', '0; url=/proxy/https://api.example.com/a'],
  [" 1.5 , 'b' x", '1.5; url=/proxy/https://api.example.com/v1/items/b'],
  ['5;', '5;'],
  ['0; url=javascript:alert(1)', undefined],
  ['soon', undefined],
]

t.test('a refresh leads through the gateway', async t => {
  for (const [given, expected] of refreshFields) {
    const [name, value] = answerFields(['Refresh', given], target)
    t.equal(name === 'Refresh' ? value : undefined, expected, given)
  }
})

t.test('fields of 64 KiB are rewritten at once', async t => {
  const long = 65_000
  const hostile = [
    '"'.repeat(long),
    `<a>;${' '.repeat(long)}"`,
    `<a>${',<a>;x=""'.repeat(long / 9)}"`,
    '<'.repeat(long),
  ]
  const begun = process.cpuUsage()
  for (const value of hostile) {
    for (const name of ['Link', 'Refresh', 'Set-Cookie', 'WWW-Authenticate', 'Location']) {
      answerFields([name, `5;url=${value}`, name, value], target)
    }
  }
  t.ok(process.cpuUsage(begun).user < 5_000_000)
})

/** Names of request fields, as the road of a request has them. */
const sent = (...names: string[]) => ({ ...target, fields: { host: 'gateway.test', names: names.map(fieldName) } })

t.test('a link to another upstream says that credentials for the first one are dropped', async t => {
  const locationOf = (exchange: LinkedAnswer, given: string) => answerFields(['Location', given], exchange)[1]
  const other = 'https://other.example/a'
  for (const name of ['Authorization', 'X-Api-Key', 'PRIVATE-TOKEN', 'Proxy-Authorization']) {
    t.equal(locationOf(sent('Accept', name), other), `/proxy/without-credentials/${other}`, name)
    t.equal(locationOf(sent(name), '/login'), '/proxy/https://api.example.com/login', 'the same upstream')
  }
  t.equal(locationOf(sent('Accept', 'Cookie'), other), `/proxy/${other}`, 'cookies have a path')
  t.equal(locationOf({ ...sent('Authorization'), tokenNames: ['authorization'] }, other), `/proxy/${other}`)
  const bare = { ...target, addressing: byUrl.bare }
  t.equal(locationOf(bare, '/login'), '/proxy/without-credentials/https://api.example.com/login', 'it still has them')
  t.equal(
    locationOf({ ...sent('Authorization'), addressing: byPath.plain }, other),
    '/proxy/without-credentials/https/other.example/a',
  )
})
