import fc from 'fast-check'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t from 'tap'
import { forge, hmac } from '../fixtures/forge.ts'
import { runs } from '../fixtures/runs.ts'
import { openInternal, ourHeader, signingSecret, subject } from '../fixtures/tokens.ts'

t.test('a token carries id, name and trust score, and both names of the answer hold it', async t => {
  const { issue } = await openInternal()
  const reply = await issue(subject)
  t.equal(reply.accessToken, reply.token)
  t.equal(reply.tokenType, 'Bearer')
  t.equal(reply.expiresAt, '2026-01-05T10:15:00.000Z')
  t.strictSame(decodeProtectedHeader(reply.token), { alg: 'HS256', typ: 'JWT' })
  const { jti, ...claims } = decodeJwt(reply.token)
  t.match(jti, /^[0-9a-f-]{36}$/)
  t.strictSame(claims, {
    name: 'Crawler',
    trust_score: 0.5,
    sub: subject.id,
    iss: 'agent-gateway',
    aud: 'agent-gateway',
    iat: 1767607200,
    exp: 1767608100,
  })
})

t.test('no two tokens are the same', async t => {
  const { issue } = await openInternal()
  t.not((await issue(subject)).token, (await issue(subject)).token)
})

t.test('a token verified once is known at once the next time, until it ends', async t => {
  const { issue, verify, clock } = await openInternal()
  const { token } = await issue(subject)
  t.ok(verify(token) instanceof Promise)
  const claims = await verify(token)
  t.equal(claims?.sub, subject.id)
  t.equal(verify(token), claims)
  clock.advance(15 * 60_000 - 1)
  t.equal(verify(token), claims)
  clock.advance(1)
  t.equal(verify(token), undefined)
})

t.test('what is not shaped like a token of ours is refused at once, without a promise', async t => {
  const { verify, signed } = await openInternal()
  t.equal(verify('x'.repeat(100_000)), undefined)
  t.equal(verify(signed({}, { alg: 'RS256', typ: 'JWT' })), undefined)
})

t.test('names with quotes, control characters and emoji come back as they went in', async t => {
  const { issue, verify } = await openInternal()
  for (const name of ['a"b\\c', '\u0000\n', '😀', '\u202e', '__proto__']) {
    t.match(await verify((await issue({ ...subject, name })).token), { name })
  }
})

t.test('a token changed in any one place is refused', async t => {
  const { signed, verify } = await openInternal()
  const good = signed()
  const place = fc.nat(good.length - 1)
  await fc.assert(
    fc.asyncProperty(place, fc.string({ unit: 'binary', minLength: 0, maxLength: 2 }), async (at, put) => {
      const changed = good.slice(0, at) + put + good.slice(at + 1)
      return changed === good || (await verify(changed)) === undefined
    }),
    { numRuns: runs(2_000) },
  )
  t.pass('holds')
})

t.test('no text and no claims whatever make the verifier fail', async t => {
  const { verify } = await openInternal()
  const texts = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.base64String().map(text => `${text}.${text}.${text}`),
  )
  await fc.assert(fc.asyncProperty(texts, async text => (await verify(text)) === undefined))
  const forged = fc.json().map(payload => forge(ourHeader, payload, hmac(signingSecret)))
  await fc.assert(fc.asyncProperty(forged, async token => (await verify(token)) === undefined))
  t.pass('holds')
})

t.test('tokens of before are void once an epoch is used, also those that were verified', async t => {
  const { keys, issue, verify, problemOf } = await openInternal()
  const [known, unknown] = [await issue(subject), await issue(subject)]
  t.match(await verify(known.token), { sub: subject.id })
  const asked = problemOf(unknown.token)
  await keys.use('e1')
  t.strictSame(
    [await problemOf(known.token), await asked, await problemOf(unknown.token)],
    Array(3).fill('unknown_key'),
  )
  const renewed = await issue(subject)
  t.match(await verify(renewed.token), { sub: subject.id })
  await Promise.all([keys.use('e2'), keys.use('e3')])
  t.equal(await problemOf(renewed.token), 'unknown_key')
  const last = await issue(subject)
  await keys.use('e3')
  t.match(await verify(last.token), { sub: subject.id }, 'the epoch that was asked for last counts')
})
