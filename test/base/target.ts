/** Threat T05 of SECURITY.md. */
import fc from 'fast-check'
import t from 'tap'
import { parseTarget, type Target } from '../../src/base/target.ts'
import { runs } from '../fixtures/runs.ts'

function parsed(raw: string): Target {
  const target = parseTarget(raw)
  if (typeof target === 'string') throw new Error(`${raw}: ${target}`)
  return target
}

t.test('a target keeps path and query byte for byte', async t => {
  const target = parsed('https://api.example.com/a%2Fb/c..%2fc;v=1?x=1&x=2&x=%26&y=+%20')
  t.equal(target.requestTarget, '/a%2Fb/c..%2fc;v=1?x=1&x=2&x=%26&y=+%20')
  t.equal(target.url, 'https://api.example.com/a%2Fb/c..%2fc;v=1?x=1&x=2&x=%26&y=+%20')
  t.match(target.origin, { scheme: 'https', host: 'api.example.com', port: 443, key: 'https://api.example.com' })
})

t.test('scheme and host are lowered, an empty path is the root, an empty query stays', async t => {
  t.equal(parsed('HTTP://API.Example.COM').url, 'http://api.example.com/')
  t.equal(parsed('http://a.example?x').requestTarget, '/?x')
  t.equal(parsed('http://a.example/a?').requestTarget, '/a?')
})

t.test("the scheme's own port is left out of the origin, any other stays", async t => {
  t.equal(parsed('http://a.example:80/').origin.key, 'http://a.example')
  t.equal(parsed('https://a.example:80/').origin.key, 'https://a.example:80')
  t.equal(parsed('http://[::1]:8080/').origin.key, 'http://[::1]:8080')
})

const refused: readonly (readonly [string, RegExp])[] = [
  ['', /empty/],
  ['http:/a.example/', /merged slashes/],
  ['http:a.example/', /must begin/],
  ['http%3A%2F%2Fa.example/', /must begin/],
  ['file:///etc/passwd', /must begin/],
  ['gopher://a.example/', /must begin/],
  ['//a.example/', /must begin/],
  ['http:///path', /no host/],
  ['http://user:pw@a.example/', /credentials/],
  ['http://a.example/x#y', /fragment/],
  ['http://a.example\\@b.example/', /backslash/],
  ['http://a.example/a b', /space/],
  ['http://a.example/\u00e9', /non-ASCII/],
  ['http://a.example/a/../b', /dot segments/],
  ['http://a.example/a/%2e%2E/b', /dot segments/],
  ['http://a.example/.', /dot segments/],
  ['http://a.example/%2e', /dot segments/],
  ['http://a.example.:80/', /ends in a dot/],
  ['http://a.example:/', /port/],
  ['http://a.example:0/', /port/],
  ['http://a.example:080/', /port/],
  ['http://a.example:65536/', /port/],
  ['http://127.1/', /Write it as 127\.0\.0\.1/],
  ['http://0x7f.1/', /Write it as 127\.0\.0\.1/],
  ['http://0177.0.0.1/', /Write it as/],
  ['http://2130706433/', /Write it as/],
  ['http://256.0.0.1/', /canonical/],
  ['http://[0:0:0:0:0:0:0:1]/', /Write it as \[::1\]/],
  ['http://[::1%25eth0]/', /canonical/],
  ['http://[v1.x]/', /canonical/],
  ['http://[::ffff:7f00:1]/', /Write it as 127\.0\.0\.1\./],
  ['http://[::ffff:127.0.0.1]:8080/', /Write it as 127\.0\.0\.1\./],
  ['http://[::FFFF:0a00:0001]/', /Write it as 10\.0\.0\.1\./],
  ['http://[0:0:0:0:0:ffff:a9fe:a9fe]/', /Write it as 169\.254\.169\.254\./],
  ['http://a%2ecom/', /not a valid host/],
  ['http://a..b/', /not a valid host/],
  ['http://-a.example/', /not a valid host/],
  ['http://xn--a/', /not a valid host/],
  [`http://${'a'.repeat(64)}.example/`, /not a valid host/],
]

for (const [raw, detail] of refused) {
  t.test(`refused with its reason: ${JSON.stringify(raw)}`, async t => {
    t.match(parseTarget(raw), detail)
  })
}

t.test('what is accepted is sent as it was written, or as a URL parser reads it', async t => {
  const part = fc.stringMatching(/^[\x21-\x7e]{0,12}$/)
  const host = fc.oneof(
    fc.domain(),
    fc.ipV4(),
    fc.ipV4Extended(),
    fc.ipV6().map(ip => `[${ip}]`),
    part,
  )
  fc.assert(
    fc.property(fc.constantFrom('http', 'https', 'HTTP'), host, part, part, (scheme, name, path, query) => {
      const raw = `${scheme}://${name}/${path}?${query}`
      const target = parseTarget(raw)
      if (typeof target === 'string') return
      const whole = new URL(target.url)
      const written = raw.slice(scheme.length + 3).replace(/^[^/?]*/, '')
      const same = target.requestTarget === written || target.requestTarget === `/${written}`
      if (!same) throw new Error(`sent ${target.requestTarget} for ${raw}`)
      if (whole.hostname !== target.origin.host)
        throw new Error(`a parser reads host ${whole.hostname} in ${target.url}`)
      if ((whole.port || (whole.protocol === 'http:' ? '80' : '443')) !== String(target.origin.port)) {
        throw new Error(`a parser reads port ${whole.port} in ${target.url}`)
      }
      if (whole.username !== '' || whole.hash !== '') throw new Error(`a parser reads more in ${target.url}`)
    }),
    { numRuns: runs(20_000) },
  )
  t.pass('holds')
})
