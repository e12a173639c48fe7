import t from 'tap'
import { ec, openPair, strangerRsa } from '../fixtures/provider.ts'
import { openInternal, ourHeader } from '../fixtures/tokens.ts'

t.test('a token of the gateway is rejected with what is wrong with it', async t => {
  const { signed, problemOf, now, clock } = await openInternal()
  const stranger = await openInternal([], 'nW8sKq3ZpB7vXc1YtR5mLd9HfJ2gUo6E')
  const cases = [
    ['a.b.c', 'malformed'],
    [signed({}, { ...ourHeader, alg: 'HS384' }), 'foreign'],
    [(await stranger.issue({ id: 'a', name: 'a', trustScore: 1 })).token, 'unknown_key'],
    [signed({ exp: now - 1 }), 'expired'],
    [signed({ nbf: now + 600 }), 'not_yet_valid'],
    [signed({ nbf: 'x' }), 'claims'],
    [signed({ iss: 'other' }), 'issuer'],
    [signed({ aud: 'other' }), 'audience'],
    [signed({ sub: undefined }), 'claims'],
    [signed({ exp: now + 100_000 }), 'claims'],
  ] as const
  for (const [token, problem] of cases) t.equal(await problemOf(token), problem)
  t.match(await problemOf(signed()), { exp: now + 900 })
  clock.advance(900_000)
  t.equal(problemOf(signed()), 'expired', 'verified before')
})

t.test('a token of the identity provider is rejected with what is wrong with it', async t => {
  const { token, problemOf, now, clock } = openPair()
  const cases = [
    ['a.b.c', 'malformed'],
    [token({}, { alg: 'HS256' }), 'foreign'],
    [token({ nonce: 'an ID token' }), 'foreign'],
    [token({}, { kid: 'other' }), 'unknown_key'],
    [token({}, {}, strangerRsa.privateKey), 'signature'],
    [token({}, { kid: 'ec' }, ec.privateKey), 'unknown_key'],
    [token({ exp: now - 61 }), 'expired'],
    [token({ exp: now - 1 }), 'expired'],
    [token({ iss: 'other' }), 'issuer'],
    [token({ aud: 'other' }), 'audience'],
    [token({ iat: now + 600 }), 'claims'],
    [token({ sub: 'nobody' }), 'unknown_agent'],
  ] as const
  for (const [sent, problem] of cases) t.equal(await problemOf(sent), problem)
  t.match(await problemOf(token()), { external_sub: 'user-1' })
  clock.advance(300_000)
  t.equal(problemOf(token()), 'expired', 'verified before')
})
