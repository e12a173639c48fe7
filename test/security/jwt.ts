import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { StartupError } from '../../src/errors.ts'
import { openSigningKeys } from '../../src/tokens/key.ts'
import { forge, hmac, part } from '../fixtures/forge.ts'
import { cases, refuses, runCases } from '../fixtures/jwt-cases.ts'
import { agent, openPair, strangerRsa } from '../fixtures/provider.ts'
import { by, openBench } from '../fixtures/registry.ts'
import { openInternal, ourHeader, signingSecret, subject } from '../fixtures/tokens.ts'

async function internal() {
  const bench = await openInternal()
  const good = bench.signed()
  const [header = '', payload64 = '', signature = ''] = good.split('.')
  return { ...bench, good, header, payload64, signature }
}

const withHeaders =
  (...headers: object[]) =>
  async (t: Test) => {
    const { verify, signed } = await internal()
    for (const header of headers)
      await refuses(t, verify, signed({}, { ...ourHeader, ...header }), JSON.stringify(header).slice(0, 80))
  }
const withClaims =
  (...claims: ((now: number) => object)[]) =>
  async (t: Test) => {
    const { verify, signed, now } = await internal()
    for (const claim of claims) await refuses(t, verify, signed(claim(now)), JSON.stringify(claim(now)))
  }
const withPayloads =
  (...payloads: (string | Buffer)[]) =>
  async (t: Test) => {
    const { verify } = await internal()
    for (const payload of payloads) await refuses(t, verify, forge(ourHeader, payload, hmac(signingSecret)))
  }
/** The payload of a valid token, its claims replaced by text. */
const withText =
  (...replacements: [string, string][]) =>
  async (t: Test) => {
    const { verify, payload } = await internal()
    for (const [from, to] of replacements) {
      const text = JSON.stringify(payload)
      t.match(text, from)
      await refuses(t, verify, forge(ourHeader, text.replace(from, to), hmac(signingSecret)), to)
    }
  }

runCases({
  async J01(t) {
    const { verify, payload } = await internal()
    const unsigned = `${part({ alg: 'none', typ: 'JWT' })}.${part(payload)}.`
    await refuses(t, verify, unsigned)
    await refuses(t, openPair().verify, unsigned)
  },
  async J02(t) {
    const { verify, payload64 } = await internal()
    for (const alg of ['None', 'NONE', 'nOnE', '', null, ['HS256'], { HS256: true }]) {
      await refuses(t, verify, `${part({ alg, typ: 'JWT' })}.${payload64}.`)
      await refuses(t, verify, `${part({ alg, typ: 'JWT' })}.${payload64}.AA`)
    }
  },
  async J03(t) {
    const { verify, payload64, signature } = await internal()
    await refuses(t, verify, `${part({ alg: 'none', typ: 'JWT' })}.${payload64}.${signature}`)
  },
  async J04(t) {
    const { verify, header, payload64 } = await internal()
    await refuses(t, verify, `${header}.${payload64}.`)
  },
  async J05(t) {
    const { verify, header, payload64 } = await internal()
    await refuses(t, verify, `${header}.${payload64}`)
    await refuses(t, verify, header)
  },
  async J06(t) {
    const { verify, good, signature } = await internal()
    await refuses(t, verify, `${good}.${signature}`)
    await refuses(t, verify, `${good}.${signature}.${signature}`)
    await refuses(t, verify, `.${good}`)
    await refuses(t, verify, '..')
    await refuses(t, verify, '....')
  },
  async J11(t) {
    const { verify, payload } = await internal()
    await refuses(t, verify, forge({ ...ourHeader, kid: '../../../../dev/null' }, payload, hmac('')))
    await refuses(t, verify, forge(ourHeader, payload, hmac('')))
  },
  J12: withHeaders({ kid: "x' UNION SELECT 'key" }),
  J13: withHeaders({ kid: '|sleep 5' }),
  J14: withHeaders({ kid: 'k'.repeat(1_048_576) }),
  async J15(t) {
    await withHeaders({ kid: 1 }, { kid: { a: 1 } }, { kid: ['rsa'] }, { kid: null })(t)
    const { verify: verifyExternal, token } = openPair()
    for (const kid of [1, { a: 1 }, ['rsa'], null]) await refuses(t, verifyExternal, token({}, { kid }))
  },
  async J19(t) {
    await withHeaders({ x5c: ['MIIB'] })(t)
    const { verify: verifyExternal, token } = openPair()
    await refuses(t, verifyExternal, token({}, { x5c: ['MIIB'] }, strangerRsa.privateKey))
  },
  J20: withHeaders({ crit: ['exp'] }, { crit: ['unknown'], unknown: 1 }, { crit: [] }),
  J21: withHeaders({ b64: false, crit: ['b64'] }, { b64: true }),
  J22: withHeaders({ zip: 'DEF' }),
  J23: withHeaders({ cty: 'JWT' }),
  async J24(t) {
    await withHeaders({ typ: 'at+jwt' }, { typ: 'jwt' }, { typ: undefined }, { typ: 'JOSE' }, { typ: ['JWT'] })(t)
    const { verify: verifyExternal, token } = openPair()
    for (const typ of ['JWT', 'at+jwt', 'application/at+jwt', undefined]) {
      t.match(await verifyExternal(token({}, { typ })), { sub: agent.id }, `${typ}`)
    }
    for (const typ of ['logout+jwt', 'dpop+jwt', 'secevent+jwt', 'JOSE', 1])
      await refuses(t, verifyExternal, token({}, { typ }))
  },
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
    const { registry, agent: register } = await openBench(t)
    const { verify, issue } = await internal()
    const { id } = await register({ id: subject.id })
    const { token } = await issue({ ...subject, trustScore: 1 })
    registry.recordTrust(id, 'humanDenial', null)
    await registry.flush()
    t.match(await verify(token), { sub: id, trust_score: 1 })
    t.equal(registry.trustOf(registry.get(id)!), 0.38, 'what decisions are made on')
  },
  J39: withPayloads('[]', '"text"', '1', 'null', 'true', ''),
  J40: withPayloads(Buffer.from('{"sub":"\xff\xfe"}', 'latin1'), Buffer.from('\ufeff{}')),
  async J41(t) {
    const { verify, signed } = await internal()
    const token = signed({ padding: 'p'.repeat(2_097_152) })
    const start = performance.now()
    await refuses(t, verify, token)
    await refuses(t, openPair().verify, token)
    await refuses(t, verify, signed({ padding: 'p'.repeat(8_192) }))
    t.ok(performance.now() - start < 1_000)
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
  async J43(t) {
    const { verify, header, signed } = await internal()
    const token = signed({ name: '>>>???\u00ff' })
    t.ok(await verify(token))
    const standard = token.replaceAll('-', '+').replaceAll('_', '/')
    t.not(standard, token)
    await refuses(t, verify, standard)
    await refuses(t, verify, token.replace(header, `${header}=`))
  },
  async J44(t) {
    const { verify, header, payload64, signature } = await internal()
    for (const pad of ['=', '==']) {
      await refuses(t, verify, `${header}${pad}.${payload64}.${signature}`)
      await refuses(t, verify, `${header}.${payload64}${pad}.${signature}`)
      await refuses(t, verify, `${header}.${payload64}.${signature}${pad}`)
    }
  },
  async J45(t) {
    const { verify, good } = await internal()
    for (const space of [' ', '\n', '\t', '\r', '\0', '\u00a0']) {
      for (const at of [0, 5, good.indexOf('.'), good.length - 3, good.length]) {
        await refuses(t, verify, good.slice(0, at) + space + good.slice(at))
      }
    }
  },
  async J46(t) {
    const { verify, good } = await internal()
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const same = Buffer.from(good.split('.')[2]!, 'base64url')
    let spellings = 0
    for (const char of alphabet) {
      const other = good.slice(0, -1) + char
      if (other === good || !Buffer.from(other.split('.')[2]!, 'base64url').equals(same)) continue
      spellings++
      await refuses(t, verify, other)
    }
    t.equal(spellings, 3, '32 bytes leave two bits')
  },
  async J47(t) {
    const { verify, header, payload64, signature } = await internal()
    const bytes = Buffer.from(signature, 'base64url')
    const changed = Buffer.from(bytes)
    changed[0] = changed[0]! ^ 1
    for (const other of [bytes.subarray(0, -1), Buffer.concat([bytes, Buffer.alloc(1)]), changed]) {
      await refuses(t, verify, `${header}.${payload64}.${other.toString('base64url')}`)
    }
  },
  async J48(t) {
    const { verify, payload } = await internal()
    const header = { alg: 'HS512', typ: 'JWT' }
    await refuses(t, verify, forge(header, payload, hmac(signingSecret, 'sha512')))
    await refuses(
      t,
      verify,
      forge(header, payload, input => hmac(signingSecret, 'sha512')(input).subarray(0, 32)),
    )
    await refuses(t, verify, forge(header, payload, hmac(signingSecret)))
  },
  async J49(t) {
    const { verify, payload } = await internal()
    for (const secret of ['', '\0', Buffer.alloc(32), Buffer.alloc(64)]) {
      await refuses(t, verify, forge(ourHeader, payload, hmac(secret)), 'HMAC pads a short key with NUL')
    }
  },
  async J50(t) {
    const weak = [
      'secret',
      'changeme',
      '',
      'x'.repeat(64),
      'your-256-bit-secret-your-256-bit-secret',
      '<SIGNING_SECRET>',
    ]
    for (const Secret of weak) {
      await t.rejects(openSigningKeys({ Secret, PreviousSecrets: [] }, 'unused'), StartupError, Secret)
    }
  },
  async J51(t) {
    const { registry, agent: register } = await openBench(t)
    const { verify, issue } = await internal()
    const { id } = await register({ id: subject.id })
    const { token } = await issue(subject)
    const claims = await verify(token)
    t.ok(registry.get(claims!.sub))
    await registry.remove(id, by)
    t.equal(registry.get((await verify(token))!.sub), undefined)
  },
  async J52(t) {
    const { registry, agent: register } = await openBench(t)
    await register({ id: subject.id })
    await registry.transition(subject.id, 'revoke', by)
    const { verify, issue } = await internal()
    t.equal(registry.get((await verify((await issue(subject)).token))!.sub)?.status, 'Revoked')
  },
  async J53(t) {
    const { registry, agent: register } = await openBench(t)
    await register({ id: subject.id })
    await registry.transition(subject.id, 'quarantine', by)
    const { verify, issue } = await internal()
    t.equal(registry.get((await verify((await issue(subject)).token))!.sub)?.status, 'Quarantined')
  },
  async J54(t) {
    const next = 'nW8sKq3ZpB7vXc1YtR5mLd9HfJ2gUo6E'
    const { token } = await (await openInternal()).issue(subject)
    await refuses(t, (await openInternal([], next)).verify, token)
    t.ok(await (await openInternal([signingSecret], next)).verify(token), 'unless an overlap is configured')
  },
  async J55(t) {
    const { registry, agent: register } = await openBench(t)
    const { verify, issue } = await internal()
    const first = await register({ name: 'same' })
    const { token } = await issue({ ...subject, id: first.id, name: 'same' })
    await registry.remove(first.id, by)
    await register({ name: 'same' })
    t.equal(registry.get((await verify(token))!.sub), undefined)
  },
  async J67(t) {
    const { verify, good } = await internal()
    await refuses(t, verify, `${good}, Bearer ${good}`)
    await refuses(t, verify, `${good},${good}`)
  },
  async J68(t) {
    const { verify } = await internal()
    for (const token of ['', ' ', 'Bearer', 'Basic YTpi', 'x'.repeat(8_192), '\u{1f600}.\u{1f600}.\u{1f600}']) {
      await refuses(t, verify, token)
    }
  },
  async J69(t) {
    const { verify, good } = await internal()
    for (const token of [`\u00a0${good}`, `${good}\u00a0`, `\u200b${good}`, `${good}\u2028`])
      await refuses(t, verify, token)
  },
})

t.test('the token that each case spoils is accepted before', async t => {
  const { verify, good, payload } = await internal()
  t.strictSame(await verify(good), payload)
})

t.test('every case has a test here or in jwt-external', async t => {
  const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')
  const source = read('./jwt.ts') + read('./jwt-external.ts')
  for (const { id } of cases) t.match(source, new RegExp(`^  (async )?${id}[(:]`, 'm'))
})
