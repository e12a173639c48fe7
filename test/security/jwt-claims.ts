import { cpuTimeOf } from '../fixtures/cpu-time.ts'
import { forge, hmac, part } from '../fixtures/forge.ts'
import { internal, refuses, runCases, withClaims, withPayloads, withText } from '../fixtures/jwt-cases.ts'
import { openPair } from '../fixtures/provider.ts'
import { openBench } from '../fixtures/registry.ts'
import { ourHeader, signingSecret, subject } from '../fixtures/tokens.ts'

runCases({
  J25: withClaims(
    () => ({ exp: undefined }),
    () => ({ exp: null }),
  ),
  async J26(t) {
    const { verify, signed, now, clock } = await internal()
    await refuses(t, verify, signed({ exp: now - 1 }))
    await refuses(t, verify, signed({ exp: now }))
    const token = signed()
    t.ok(await verify(token))
    clock.advance(899_999)
    t.ok(await verify(token))
    clock.advance(1)
    await refuses(t, verify, token, 'verified before, and over now')
  },
  J27: withClaims(
    () => ({ exp: '9999999999' }),
    now => ({ iat: `${now}` }),
  ),
  async J28(t) {
    await withClaims(
      () => ({ exp: -1 }),
      now => ({ exp: now + 0.5 }),
    )(t)
    await withText(
      ['"exp":1767608100', '"exp":1e400'],
      ['"exp":1767608100', '"exp":NaN'],
      ['"exp":1767608100', '"exp":-1e400'],
    )(t)
  },
  async J29(t) {
    await withClaims(
      now => ({ exp: now * 1000 }),
      now => ({ exp: now + 900 + 61 }),
    )(t)
    const { verify, signed, now } = await internal()
    t.ok(await verify(signed({ exp: now + 900 + 60 })))
  },
  async J30(t) {
    await withClaims(
      now => ({ nbf: now + 61 }),
      now => ({ nbf: `${now - 5}` }),
    )(t)
    const { verify: verifyExternal, token, now } = openPair()
    await refuses(t, verifyExternal, token({ nbf: now + 61 }))
    t.ok(await verifyExternal(token({ nbf: now + 60 })))
  },
  async J31(t) {
    await withClaims(
      now => ({ iat: now + 61 }),
      () => ({ iat: undefined }),
    )(t)
    const { verify: verifyExternal, token, now } = openPair()
    await refuses(t, verifyExternal, token({ iat: now + 61 }))
  },
  async J32(t) {
    const wrong = [
      { iss: 'other' },
      { iss: undefined },
      { iss: ['agent-gateway'] },
      { iss: '' },
      { iss: 'AGENT-GATEWAY' },
    ]
    await withClaims(...wrong.map(claim => () => claim))(t)
    const { verify: verifyExternal, token } = openPair()
    for (const iss of ['other', undefined, ['https://idp.test/realm'], 'https://idp.test/realm/', 'https://idp.test']) {
      await refuses(t, verifyExternal, token({ iss }))
    }
  },
  async J33(t) {
    const wrong = [
      { aud: 'other' },
      { aud: undefined },
      { aud: [] },
      { aud: ['other'] },
      { aud: { 0: 'agent-gateway' } },
    ]
    await withClaims(...wrong.map(claim => () => claim), () => ({ aud: ['agent-gateway', {}] }))(t)
    const { verify, signed } = await internal()
    t.ok(await verify(signed({ aud: ['other', 'agent-gateway'] })))
    const { verify: verifyExternal, token } = openPair()
    for (const aud of ['other', undefined, [], ['gateway', 1]]) await refuses(t, verifyExternal, token({ aud }))
    t.ok(await verifyExternal(token({ aud: ['account', 'gateway'] })))
  },
  async J34(t) {
    const { verify, header, payload, signature } = await internal()
    await refuses(
      t,
      verify,
      `${header}.${part({ ...payload, sub: '11111111-1111-4111-8111-111111111111' })}.${signature}`,
    )
  },
  async J35(t) {
    await withText(
      ['{"sub"', '{"sub":"x","sub"'],
      ['{"sub"', '{"s\\u0075b":"x","sub"'],
      ['{"sub"', '{"a":[{"b":1,"b":2}],"sub"'],
    )(t)
    const { verify, payload } = await internal()
    const header = '{"alg":"HS256","alg":"HS256","typ":"JWT"}'
    await refuses(t, verify, forge(header, payload, hmac(signingSecret)))
    const nested = JSON.stringify(payload).replace('{"sub"', '{"a":{"x":1},"b":{"x":[":,{",{"x":"\\""}]},"sub"')
    t.ok(await verify(forge(ourHeader, nested, hmac(signingSecret))), 'the same name in different objects is fine')
  },
  async J36(t) {
    await withText(['{"sub"', '{"__proto__":{"role":"admin"},"sub"'], ['{"sub"', '{"a":{"__proto__":null},"sub"'])(t)
    t.equal(({} as Record<string, unknown>)['role'], undefined)
  },
  async J37(t) {
    const { verify, header, payload, signature } = await internal()
    await refuses(t, verify, `${header}.${part({ ...payload, trust_score: 1 })}.${signature}`)
  },
  async J38(t) {
    const { registry, agent: register } = await openBench()
    const { verify, issue } = await internal()
    const { id } = await register({ id: subject.id })
    const { token } = await issue({ ...subject, trustScore: 1 })
    registry.recordTrust(id, 'humanDenial', null)
    await registry.flush()
    t.match(await verify(token), { sub: id, trust_score: 1 })
    t.equal(registry.trustOf(registry.get(id)!), 0.45, 'what decisions are made on')
  },
  J39: withPayloads('[]', '"text"', '1', 'null', 'true', ''),
  J40: withPayloads(Buffer.from('{"sub":"\xff\xfe"}', 'latin1'), Buffer.from('\ufeff{}')),
  async J41(t) {
    const { verify, signed } = await internal()
    const token = signed({ padding: 'p'.repeat(2_097_152) })
    const took = await cpuTimeOf(async () => {
      await refuses(t, verify, token)
      await refuses(t, openPair().verify, token)
      await refuses(t, verify, signed({ padding: 'p'.repeat(8_192) }))
    })
    t.ok(took < 1_000, `${took} ms`)
  },
  async J42(t) {
    const { verify, payload } = await internal()
    for (const depth of [1_000, 10_000]) {
      const header = `{"alg":"HS256","typ":"JWT","a":${'['.repeat(depth)}${']'.repeat(depth)}}`
      await refuses(t, verify, forge(header, payload, hmac(signingSecret)))
      const text = `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`
      await refuses(t, verify, forge(ourHeader, text, hmac(signingSecret)))
    }
  },
})
