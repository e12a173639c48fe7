import t from 'tap'
import { createPermits, parsePermitted, permittedBy } from '../../src/intercept/name-constraints.ts'

const constraintsOf = (...permit: string[]) => {
  const parsed = parsePermitted(permit)
  if (parsed !== undefined && 'wrong' in parsed) throw new TypeError(parsed.wrong)
  return parsed
}

t.test('without constraints every host is permitted', async t => {
  t.equal(constraintsOf(), undefined)
  const permits = createPermits(undefined)
  for (const host of ['example.com', '127.0.0.1', '::1']) t.ok(permits(host), host)
})

t.test('a domain permits itself and the names below it, but no other name and no address', async t => {
  const permits = createPermits(constraintsOf('Example.com', 'localhost'))
  for (const host of ['example.com', 'api.example.com', 'a.b.example.com', 'localhost']) t.ok(permits(host), host)
  for (const host of ['example.org', 'badexample.com', 'com', 'example.com.evil.org', '127.0.0.1', '::1'])
    t.notOk(permits(host), host)
})

t.test('a range permits its addresses, but no other address and no name', async t => {
  const permits = createPermits(constraintsOf('10.0.0.0/8', 'fd00::/8', '127.0.0.1'))
  for (const host of ['10.1.2.3', 'fd00::1', '127.0.0.1']) t.ok(permits(host), host)
  for (const host of ['11.0.0.1', 'fe80::1', '127.0.0.2', 'localhost', 'example.com']) t.notOk(permits(host), host)
})

t.test('constraints of other authorities hold as OpenSSL reads them', async t => {
  const permits = createPermits({
    permitted: { names: ['.example.com', 'example.net'], ranges: [] },
    excluded: { names: ['secret.example.net'], ranges: ['169.254.0.0/16'] },
  })
  for (const host of ['a.example.com', 'example.net', 'api.example.net', '8.8.8.8']) t.ok(permits(host), host)
  for (const host of ['example.com', 'secret.example.net', 'a.secret.example.net', '169.254.1.1'])
    t.notOk(permits(host), host)
  const none = createPermits({ permitted: { names: [], ranges: [] }, excluded: { names: [''], ranges: [] } })
  t.notOk(none('example.com'))
})

t.test('the list that was given can be read again', async t => {
  t.strictSame(permittedBy(constraintsOf('example.com', '10.0.0.0/8')!), ['example.com', '10.0.0.0/8'])
  t.strictSame(permittedBy(constraintsOf('fd00::/8')!), ['fd00::/8'])
})

t.test('text that is neither a domain nor a range is named', async t => {
  for (const wrong of ['', '*.example.com', 'https://example.com', 'example.com:443', '10.0.0.0/33', 'a b', '::1%lo'])
    t.strictSame(parsePermitted(['example.org', wrong]), { wrong }, wrong)
})
