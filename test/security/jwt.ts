/** Threat T09 of SECURITY.md. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { StartupError } from '../../src/base/refusals.ts'
import { openSigningKeys } from '../../src/tokens/key.ts'
import { forge, hmac, part } from '../fixtures/forge.ts'
import { cases, internal, refuses, runCases, withHeaders } from '../fixtures/jwt-cases.ts'
import { agent, openPair, strangerRsa } from '../fixtures/provider.ts'
import { by, openBench } from '../fixtures/registry.ts'
import { openInternal, ourHeader, signingSecret, subject } from '../fixtures/tokens.ts'

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
    const { registry, agent: register } = await openBench()
    const { verify, issue } = await internal()
    const { id } = await register({ id: subject.id })
    const { token } = await issue(subject)
    const claims = await verify(token)
    t.ok(registry.get(claims!.sub))
    await registry.remove(id, by)
    t.equal(registry.get((await verify(token))!.sub), undefined)
  },
  async J52(t) {
    const { registry, agent: register } = await openBench()
    await register({ id: subject.id })
    await registry.transition(subject.id, 'revoke', by)
    const { verify, issue } = await internal()
    t.equal(registry.get((await verify((await issue(subject)).token))!.sub)?.status, 'Revoked')
  },
  async J53(t) {
    const { registry, agent: register } = await openBench()
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
    const { registry, agent: register } = await openBench()
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

t.test('every case has a test here, in jwt-claims or in jwt-external', async t => {
  const read = (name: string) => readFileSync(new URL(`./${name}.ts`, import.meta.url), 'utf8')
  const source = ['jwt', 'jwt-claims', 'jwt-external'].map(read).join()
  for (const { id } of cases) t.match(source, new RegExp(`^  (async )?${id}[(:]`, 'm'))
})
