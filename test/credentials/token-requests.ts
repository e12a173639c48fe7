import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { jwtVerify } from 'jose'
import t from 'tap'
import type { CredentialSetting } from '../../src/config/credentials.ts'
import { redeem, revoke } from '../../src/credentials/token-requests.ts'
import { createClock } from '../fixtures/clock.ts'
import { clientSetting, obtainFrom, type TokenServer, tokenServer } from '../fixtures/token-server.ts'

const base = clientSetting()
const clock = createClock()
const { privateKey: rsa } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const { privateKey: ec } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pem = (key: KeyObject, type: 'pkcs1' | 'pkcs8' = 'pkcs8') => key.export({ type, format: 'pem' }).toString()

const obtain = (server: TokenServer, secret: string, more: Partial<CredentialSetting> = {}) =>
  obtainFrom(server, secret, { setting: { ...base, ...more }, clock })

/** The claims of an assertion, checked with the key. */
async function claimsOf(assertion: string | undefined, key: KeyObject) {
  const options = { currentDate: new Date(clock.now()) }
  return jwtVerify(assertion ?? '', createPublicKey(key.export({ type: 'pkcs8', format: 'pem' })), options)
}

t.test('client credentials: the client says who it is in the ways of RFC 6749', async t => {
  const server = tokenServer()
  const more = { Scope: 'read write', Audience: 'https://api.example', Resource: 'https://r.example' }
  t.strictSame(await obtain(server, 's e:cret', more), { value: 'token-1', lifetimeMs: 3_600_000 })
  const { url, fields, form } = server.asked[0]!
  t.equal(url, 'https://idp.example/token')
  t.equal(Buffer.from(fields['authorization']!.slice(6), 'base64').toString(), 'a+client:s+e%3Acret')
  const asked = { scope: 'read write', audience: 'https://api.example', resource: 'https://r.example' }
  t.strictSame(form, { grant_type: 'client_credentials', ...asked })
  await obtain(server, 'secret', { ClientAuth: 'Post' })
  t.match(server.asked[1]?.form, { client_id: 'a client', client_secret: 'secret' })
  t.equal(server.asked[1]?.fields['authorization'], undefined)
  await obtain(server, pem(ec), { ClientAuth: 'PrivateKeyJwt' })
  const { payload } = await claimsOf(server.asked[2]?.form['client_assertion'], ec)
  t.match(payload, { iss: 'a client', sub: 'a client', aud: 'https://idp.example' })
})

t.test('an assertion for a service account of Google has what its file says', async t => {
  const server = tokenServer()
  const account = {
    type: 'service_account',
    private_key: pem(rsa),
    private_key_id: 'k1',
    client_email: 'bot@p.example',
  }
  const file = JSON.stringify({ ...account, token_uri: 'https://oauth2.example/token' })
  await obtain(server, file, { Type: 'JwtBearer', TokenUrl: undefined, ClientId: undefined, Scope: 's1' })
  t.equal(server.asked[0]?.url, 'https://oauth2.example/token')
  t.equal(server.asked[0]?.form['grant_type'], 'urn:ietf:params:oauth:grant-type:jwt-bearer')
  const { payload, protectedHeader } = await claimsOf(server.asked[0]?.form['assertion'], rsa)
  t.strictSame(protectedHeader, { alg: 'RS256', typ: 'JWT', kid: 'k1' })
  t.match(payload, { iss: 'bot@p.example', aud: 'https://oauth2.example/token', scope: 's1' })
  t.equal(payload.sub, undefined, 'only a user that it acts for')
  t.equal(payload.iat, Math.floor(clock.now() / 1_000) - 30, 'clocks differ')
  await obtain(server, file, { Type: 'JwtBearer', Subject: 'user@p.example' })
  t.equal((await claimsOf(server.asked[1]?.form['assertion'], rsa)).payload.sub, 'user@p.example')
})

t.test('an assertion of another client has the client as issuer and subject', async t => {
  const server = tokenServer()
  const jwk = JSON.stringify({ ...createPrivateKey(pem(ec)).export({ format: 'jwk' }), kid: 'mine' })
  await obtain(server, jwk, { Type: 'JwtBearer', Audience: 'https://aud.example' })
  const { payload, protectedHeader } = await claimsOf(server.asked[0]?.form['assertion'], ec)
  t.match(payload, { iss: 'a client', sub: 'a client', aud: 'https://aud.example' })
  t.match(protectedHeader, { alg: 'ES256', kid: 'mine' })
})

t.test('a GitHub App asks for the token of an installation; its end counts from the date of the answer', async t => {
  const server = tokenServer()
  server.status = 201
  server.fields = ['Date', 'Mon, 05 Jan 2026 12:00:00 GMT']
  server.answer = { token: 'ghs_1', expires_at: '2026-01-05T13:00:00Z' }
  const app: Partial<CredentialSetting> = { Type: 'GitHubApp', ClientId: '77', Subject: '4711', TokenUrl: undefined }
  t.strictSame(await obtain(server, pem(rsa, 'pkcs1'), app), { value: 'ghs_1', lifetimeMs: 3_600_000 })
  const [asked] = server.asked
  t.equal(asked?.url, 'https://api.github.com/app/installations/4711/access_tokens')
  const { payload } = await claimsOf(asked?.fields['authorization']?.replace('Bearer ', ''), rsa)
  t.equal(payload.iss, '77')
  server.status = 404
  t.match(await obtain(server, pem(rsa), app).catch(error => error), { kind: 'needed' })
  server.status = 401
  t.match(await obtain(server, pem(rsa), app).catch(error => error), { message: 'GitHub answers with status 401.' })
})

t.test('answers that differ harmlessly from RFC 6749 are understood', async t => {
  const server = tokenServer()
  server.answer = { access_token: 'a', expires_in: '60', id_token: 'not a token' }
  t.strictSame(await obtain(server, 'secret'), { value: 'a', lifetimeMs: 60_000 })
  server.answer = { access_token: 'a' }
  t.strictSame(await obtain(server, 'secret'), { value: 'a', lifetimeMs: 3_600_000 })
})

t.test('other answers are failures, whose texts have nothing of the answer', async t => {
  const server = tokenServer()
  const cases: [number, unknown, string, (readonly string[])?][] = [
    [400, { error: 'invalid_grant' }, 'needed'],
    [200, { error: 'invalid_grant' }, 'needed'],
    [401, { error: 'invalid_client', error_description: 'hidden' }, 'failing'],
    [400, { error: 'hidden <script>' }, 'failing'],
    [500, 'hidden', 'failing'],
    [200, 'hidden', 'failing'],
    [200, [], 'failing'],
    [200, { access_token: 7, hidden: 1 }, 'failing'],
    [200, { access_token: 'hidden\r\nX: y' }, 'failing'],
    [200, { access_token: 'hidden', token_type: 'mac' }, 'failing'],
    [302, { access_token: 'hidden' }, 'failing'],
    [200, { access_token: 'hidden' }, 'failing', ['Content-Encoding', 'gzip']],
  ]
  for (const [status, answer, kind, fields = []] of cases) {
    Object.assign(server, { status, answer, fields })
    const error = await obtain(server, 'the client secret').catch(error => error)
    t.equal(error.kind, kind, `${status} ${JSON.stringify(answer)}`)
    t.notMatch(error.message, /hidden|the client secret/)
  }
})

t.test('a key that is none is a failure, whose text does not repeat it', async t => {
  for (const secret of ['k-123', '{"kty":"k-123"}', '{"private_key":"k-123"}']) {
    const error = await obtain(tokenServer(), secret, { Type: 'JwtBearer' }).catch(error => error)
    t.match(error, { kind: 'failing', message: /must be a private key/ }, secret)
    t.notMatch(error.message, /k-123/)
  }
})

t.test('Basic has user name and password', async t => {
  const { value } = await obtain(tokenServer(), 'pass:word', { Type: 'Basic', Subject: 'user' })
  t.equal(Buffer.from(value.replace('Basic ', ''), 'base64').toString(), 'user:pass:word')
})

t.test('a key signs with the algorithm of its kind, and one of another kind is refused', async t => {
  const algorithmOf = async (key: KeyObject) => {
    const server = tokenServer()
    await obtain(server, pem(key), { Type: 'JwtBearer' })
    return (await claimsOf(server.asked[0]?.form['assertion'], key)).protectedHeader.alg
  }
  t.equal(await algorithmOf(generateKeyPairSync('ed25519').privateKey), 'EdDSA')
  t.equal(await algorithmOf(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey), 'ES384')
  await t.rejects(algorithmOf(generateKeyPairSync('x25519').privateKey), /must be of RSA, P-256, P-384 or Ed25519/)
  const account = JSON.stringify({ private_key: pem(rsa) })
  t.match(await obtain(tokenServer(), account, { Type: 'JwtBearer', TokenUrl: undefined }).catch(error => error), {
    message: /TokenUrl must be set for shop/,
  })
})

t.test('GitHub that sends no token, and one that is over, are failures', async t => {
  const server = tokenServer()
  server.status = 201
  const app: Partial<CredentialSetting> = { Type: 'GitHubApp', ClientId: '77', Subject: '4711', TokenUrl: undefined }
  for (const answer of [{}, { token: 'x' }, { token: 7, expires_at: '2026-01-05T13:00:00Z' }]) {
    server.answer = answer
    t.match(await obtain(server, pem(rsa), app).catch(error => error), { message: /sent no token that lasts/ })
  }
  server.answer = { token: 'x', expires_at: '2026-01-05T09:00:00Z' }
  t.match(await obtain(server, pem(rsa), app).catch(error => error), { message: /sent no token that lasts/ })
})

t.test('a token server has as long as TimeoutSeconds says', async t => {
  const server = tokenServer()
  await obtain(server, 'secret', { TimeoutSeconds: 45 })
  t.equal(server.limitMs, 45_000)
  server.status = 201
  server.answer = { token: 'ghs_1', expires_at: '2026-01-05T13:00:00Z' }
  await obtain(server, pem(rsa), { Type: 'GitHubApp', Subject: '4711', TokenUrl: undefined, TimeoutSeconds: 7 })
  t.equal(server.limitMs, 7_000)
})

t.test('an issuer is found by its document, and one of another issuer is of no use', async t => {
  const Issuer = 'https://idp.example/tenant'
  const more = { Issuer, TokenUrl: undefined }
  const document = { issuer: Issuer, token_endpoint: 'https://tokens.example/t' }
  for (const url of [
    'https://idp.example/tenant/.well-known/openid-configuration',
    'https://idp.example/.well-known/oauth-authorization-server/tenant',
  ]) {
    const server = tokenServer()
    server.documents.set(url, document)
    t.match(await obtain(server, 'secret', more), { value: 'token-1' })
    t.equal(server.asked[0]?.url, 'https://tokens.example/t')
    for (const other of [
      { ...document, issuer: 'https://evil.example' },
      { ...document, token_endpoint: 'http://tokens.example/t' },
      { issuer: Issuer },
      'hidden',
    ]) {
      server.documents.set(url, other)
      const error = await obtain(server, 'secret', more).catch(error => error)
      t.match(error, { message: /./ })
      t.notMatch(error.message, /hidden|secret/)
    }
    t.equal(server.asked.length, 1, 'nothing is sent elsewhere')
  }
})

t.test('a token of a refresh is revoked where the document says, and nowhere else', async t => {
  const server = tokenServer()
  const setting = clientSetting({ Type: 'RefreshToken', Issuer: 'https://idp.example', TokenUrl: undefined })
  const parts = { clock, ownRequests: server, servers: new Map(), secrets: { read: async () => 'secret' } }
  const asked = { token: 'r-1', hint: 'refresh_token', signal: new AbortController().signal } as const
  const url = 'https://idp.example/.well-known/openid-configuration'
  const document = { issuer: 'https://idp.example', token_endpoint: 'https://idp.example/token' }
  server.documents.set(url, document)
  t.equal(await revoke(setting, parts, asked), false)
  server.documents.set(url, { ...document, revocation_endpoint: 'https://idp.example/revoke' })
  server.answer = ''
  t.equal(await revoke(setting, { ...parts, servers: new Map() }, asked), true)
  t.match(server.asked, [
    { url: 'https://idp.example/revoke', form: { token: 'r-1', token_type_hint: 'refresh_token' } },
  ])
  Object.assign(server, { status: 503, answer: { error: 'temporarily_unavailable' } })
  await t.rejects(revoke(setting, { ...parts, servers: new Map() }, asked), { message: /Revocation Endpoint/ })
})

t.test('a public client names itself alone', async t => {
  const server = tokenServer()
  const setting = clientSetting({ Type: 'RefreshToken', Secret: undefined, ClientAuth: 'None' })
  const read = () => Promise.reject(new Error('it has no secret'))
  const parts = { clock, ownRequests: server, servers: new Map(), secrets: { read } }
  await redeem(setting, parts, { refreshToken: 'r', signal: new AbortController().signal })
  t.match(server.asked[0]?.form, { client_id: 'a client', refresh_token: 'r' })
  t.equal(server.asked[0]?.fields['authorization'], undefined)
})
