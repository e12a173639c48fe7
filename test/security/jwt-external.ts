/** Threats T09, T14 of SECURITY.md. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { es256, forge, hmac } from '../fixtures/forge.ts'
import { refuses, runCases } from '../fixtures/jwt-cases.ts'
import { openOwnRequests } from '../fixtures/own-requests.ts'
import {
  agent,
  discoveryUrl,
  ec,
  jwk,
  keysUrl,
  openExternal,
  openPair,
  other,
  rsa,
  strangerRsa,
  weakRsa,
} from '../fixtures/provider.ts'
import { openInternal, ourHeader, signingSecret, subject } from '../fixtures/tokens.ts'

/** A server that must never be called, for headers that name one. */
async function canary(t: Test) {
  let calls = 0
  const server = createServer((_, res) => {
    calls++
    res.end('{"keys":[]}')
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`, calls: () => calls }
}

async function namesCanary(t: Test, parameter: string) {
  const { url, calls } = await canary(t)
  const ours = await openInternal()
  const theirs = openPair()
  await refuses(t, ours.verify, ours.signed({}, { ...ourHeader, [parameter]: url }))
  await refuses(t, theirs.verify, theirs.token({}, { [parameter]: url }))
  await refuses(t, theirs.verify, theirs.token({}, { [parameter]: url, kid: 'x' }, strangerRsa.privateKey))
  t.equal(calls(), 0)
}

runCases({
  async J07(t) {
    const { verify, payload } = openPair()
    const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString()
    const der = rsa.publicKey.export({ type: 'spki', format: 'der' })
    const json = JSON.stringify(jwk(rsa.publicKey, 'rsa', 'RS256'))
    const ours = await openInternal()
    for (const secret of [pem, pem.trim(), `${pem}\n`, der, json]) {
      const token = forge({ alg: 'HS256', typ: 'JWT', kid: 'rsa' }, payload, hmac(secret))
      await refuses(t, verify, token)
      await refuses(t, ours.verify, forge(ourHeader, ours.payload, hmac(secret)))
    }
  },
  async J08(t) {
    const { verify, payload } = openPair()
    await refuses(t, verify, forge({ alg: 'HS256', typ: 'JWT', kid: 'rsa' }, payload, hmac(signingSecret)))
  },
  async J09(t) {
    const { verify, payload } = openPair()
    const header = { alg: 'ES256', typ: 'JWT', kid: 'ec' }
    await refuses(
      t,
      verify,
      forge(header, payload, () => Buffer.alloc(64)),
    )
    t.match(await verify(forge(header, payload, es256(ec.privateKey))), { sub: agent.id }, 'the real one passes')
  },
  async J10(t) {
    const { verify, token } = openPair()
    await refuses(t, verify, token({}, { kid: 'weak' }, weakRsa.privateKey))
  },
  J16: t => namesCanary(t, 'jku'),
  J17: t => namesCanary(t, 'x5u'),
  async J18(t) {
    const { verify, token } = openPair()
    const own = jwk(strangerRsa.publicKey, 'rsa', 'RS256')
    await refuses(t, verify, token({}, { jwk: own }, strangerRsa.privateKey))
    await refuses(t, verify, token({}, { jwk: own, kid: undefined }, strangerRsa.privateKey))
  },
  async J56(t) {
    const { token } = openPair()
    await refuses(t, (await openInternal()).verify, token())
  },
  async J57(t) {
    const { verify, token } = openPair()
    await refuses(t, verify, token({ aud: 'another-api' }))
  },
  async J58(t) {
    const { verifyFor, token } = openPair()
    t.equal(await verifyFor(token(), other), false)
    t.equal(await verifyFor(token(), agent), true)
    t.equal(await verifyFor(token({ agent_id: other.id, sub: 'user-2' }), agent), false)
  },
  async J59(t) {
    const { verifyFor } = openPair()
    const { issue } = await openInternal()
    t.equal(await verifyFor((await issue(subject)).token, agent), false)
  },
  async J60(t) {
    const { verify, token } = openPair()
    const others = [
      { typ: 'ID' },
      { typ: 'Refresh' },
      { typ: 'Offline' },
      { token_use: 'id' },
      { nonce: 'n' },
      { at_hash: 'h' },
    ]
    for (const claims of others) await refuses(t, verify, token(claims), JSON.stringify(claims))
    for (const claims of [{ typ: 'Bearer' }, { token_use: 'access' }]) t.ok(await verify(token(claims)))
  },
  async J61(t) {
    const elsewhere = await canary(t)
    const server = createServer((req, res) => {
      if (req.url === '/big/.well-known/openid-configuration') return res.end(`{"a":"${'x'.repeat(10_485_760)}"}`)
      if (req.url?.startsWith('/moved/')) return res.writeHead(302, { Location: elsewhere.url }).end()
      if (req.url?.startsWith('/broken/')) return res.writeHead(500).end()
      if (req.url?.startsWith('/text/')) return res.end('not JSON')
      return undefined // never answers
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    t.teardown(() => server.closeAllConnections())
    t.teardown(() => server.close())
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { token } = openPair()
    for (const path of ['big', 'moved', 'broken', 'text', 'slow']) {
      const jwt = { Authority: `${base}/${path}`, RequireHttpsMetadata: false }
      const { fetch } = await openOwnRequests(t, { fetchTimeoutMs: 200 })
      const { verify, errors } = openExternal(fetch, jwt)
      await refuses(t, verify, token(), path)
      await refuses(t, verify, token(), path)
      t.equal(errors.length, 1, `${path}: asked once, then the cooldown`)
    }
    t.equal(elsewhere.calls(), 0)
  },
  async J62(t) {
    const { verify, token, provider, clock } = openPair()
    t.ok(await verify(token()))
    clock.advance(30_000)
    const flood = Array.from({ length: 1_000 }, (_, i) => verify(token({}, { kid: `k${i}` })))
    t.equal((await Promise.all(flood)).filter(claims => claims !== undefined).length, 0)
    t.equal(provider.asked.filter(url => url.endsWith('/keys')).length, 2)
  },
  async J63(t) {
    const { verify, token, provider, clock } = openPair()
    t.ok(await verify(token()))
    provider.documents[keysUrl] = { keys: [jwk(strangerRsa.publicKey, 'new', 'RS256')] }
    clock.advance(30_000)
    t.ok(await verify(token({}, { kid: 'new' }, strangerRsa.privateKey)))
    t.equal(provider.asked.length, 3)
  },
  async J64(t) {
    const jwt = '{ Authority: "http://idp.test/realm", Audience: gateway }'
    const text = `Security: { AgentAuth: { ExternalIdentity: { Provider: Jwt, Jwt: ${jwt} } } }`
    t.match(loadConfig({ file: { path: 'gateway.yaml', text }, env: {} }), {
      problems: [{ message: /Authority: must be an https URL unless RequireHttpsMetadata is false$/ }],
    })
  },
  async J65(t) {
    const { verify, token, provider } = openPair()
    provider.documents[discoveryUrl] = {
      issuer: 'https://other.test/realm',
      jwks_uri: keysUrl,
    }
    await refuses(t, verify, token())
    await refuses(t, verify, token({ iss: 'https://other.test/realm' }))
  },
  async J66(t) {
    const { verify, warnings, token } = openPair({ ValidateIssuer: false })
    t.match(warnings.join(), /ValidateIssuer is false/)
    t.ok(await verify(token({ iss: 'anyone' })))
    await refuses(t, verify, token({ aud: 'other' }))
    await refuses(t, verify, token({}, {}, strangerRsa.privateKey))
  },
})

t.test('the token that each case spoils is accepted before', async t => {
  const { verify, token } = openPair()
  t.match(await verify(token()), { sub: agent.id, external_sub: 'user-1' })
})
