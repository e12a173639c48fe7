/** What a person grants in a browser, and who else may answer. Threat T87. */
import t from 'tap'
import type { CredentialSetting } from '../../src/config/credentials.ts'
import { beginCodeConsent, deviceConsent, finishCodeConsent, refreshTokenIn } from '../../src/credentials/consent.ts'
import { createClock } from '../fixtures/clock.ts'
import { clientSetting, type TokenServer, tokenServer } from '../fixtures/token-server.ts'

const issuer = 'https://idp.example'
const redirectUri = 'http://127.0.0.1:7/callback'
const document = {
  ...{ issuer, token_endpoint: `${issuer}/token`, authorization_endpoint: `${issuer}/consent?tenant=1` },
  device_authorization_endpoint: `${issuer}/device`,
}

function consentTo(server: TokenServer, more: Partial<CredentialSetting> = {}) {
  server.documents.set(`${issuer}/.well-known/openid-configuration`, document)
  const own = { Type: 'RefreshToken', Issuer: issuer, TokenUrl: undefined, Scope: 'read offline_access' } as const
  const setting = clientSetting({ ...own, ...more })
  const secrets = { read: async () => 'secret' }
  const parts = { clock: createClock(), ownRequests: server, servers: new Map(), secrets }
  return { setting, parts, more: { access_type: 'offline' }, signal: new AbortController().signal }
}

const granted = { access_token: 'a', refresh_token: 'r-1', token_type: 'bearer', scope: 'read' }

t.test(
  'a person is asked for what the settings name, with PKCE, and the code is exchanged with its verifier',
  async t => {
    const server = tokenServer()
    const consent = consentTo(server)
    const begun = await beginCodeConsent(consent, redirectUri)
    const asked = Object.fromEntries(new URL(begun.url).searchParams)
    t.match(asked, {
      ...{ tenant: '1', response_type: 'code', client_id: 'a client', redirect_uri: redirectUri },
      ...{ scope: 'read offline_access', code_challenge_method: 'S256', access_type: 'offline' },
    })
    t.equal(asked['state'], begun.state)
    server.answer = {
      ...granted,
      id_token: `e30.${Buffer.from('{"email":"anna@example.com"}').toString('base64url')}.`,
    }
    const answer = new URLSearchParams({ code: 'c-1', state: begun.state, iss: issuer })
    t.match(await finishCodeConsent(consent, begun, answer), {
      ...{ refreshToken: 'r-1', access: { token: 'a', until: null } },
      ...{ scope: 'read', missing: [], login: 'anna@example.com' },
    })
    t.match(server.asked[0]?.form, { grant_type: 'authorization_code', code: 'c-1', redirect_uri: redirectUri })
    t.match(server.asked[0]?.form['code_verifier'], /^[\w-]{43,}$/)
  },
)

t.test('an answer of another server, one without a code and a refusal grant nothing', async t => {
  const server = tokenServer()
  const consent = consentTo(server)
  const begun = await beginCodeConsent(consent, redirectUri)
  const { state } = begun
  const finished = (query: string) =>
    finishCodeConsent(consent, begun, new URLSearchParams(query)).catch(error => error)
  t.match(await finished(`code=c&state=${state}&iss=https://evil.example`), { message: /not that of this server/ })
  t.match(await finished('code=c&state=other'), { message: /not that of this server/ })
  t.match(await finished(`state=${state}&error=access_denied`), {
    kind: 'needed',
    message: 'The server answers access_denied.',
  })
  t.match(await finished(`state=${state}&error=%3Cb%3E`), { message: 'The server answers an error.' })
  t.match(await finished(`state=${state}`), { message: /./ })
  t.equal(server.asked.length, 0)
})

t.test(
  'more scopes than were asked for are refused, fewer are named, and what cannot be renewed is told apart',
  async t => {
    const server = tokenServer()
    const consent = consentTo(server)
    const begun = await beginCodeConsent(consent, redirectUri)
    const finish = (answer: object) => {
      server.answer = answer
      return finishCodeConsent(consent, begun, new URLSearchParams({ code: 'c', state: begun.state }))
    }
    t.match(await finish({ ...granted, scope: 'read write' }).catch(error => error), { message: /more scopes/ })
    t.match(await finish({ ...granted, scope: '' }), { scope: '', missing: ['read'], login: null })
    t.match(await finish({ ...granted, scope: undefined, id_token: 'a.b.c' }), {
      scope: null,
      missing: [],
      login: null,
    })
    const once = await finish({ ...granted, refresh_token: undefined, expires_in: 60 })
    t.match(once, { refreshToken: undefined, missing: ['offline_access'] })
    t.equal(once.access!.until! - once.access!.at, 60_000)
    t.throws(() => refreshTokenIn(once), { message: /no refresh token.*offline_access/ })
  },
)

t.test('a device asks in the pace of the server until the person has entered the code', async t => {
  const server = tokenServer()
  const prompts: unknown[] = []
  const waits: number[] = []
  const answers = [
    [200, { device_code: 'd-1', user_code: 'AB-CD', verification_uri: `${issuer}/enter`, expires_in: 60, interval: 2 }],
    [400, { error: 'authorization_pending' }],
    [400, { error: 'slow_down' }],
    [200, granted],
  ] as const
  server.onAsk = () => {
    const [status, answer] = answers[server.asked.length - 1]!
    Object.assign(server, { status, answer })
  }
  const ways = { onPrompt: (prompt: unknown) => prompts.push(prompt), wait: async (ms: number) => waits.push(ms) }
  t.match(await deviceConsent(consentTo(server), ways), { refreshToken: 'r-1' })
  t.match(prompts, [{ url: `${issuer}/enter`, code: 'AB-CD' }])
  t.strictSame(waits, [2_000, 2_000, 7_000])
  t.match(server.asked[0]?.form, { scope: 'read offline_access', access_type: 'offline' })
  t.match(server.asked[3]?.form, { device_code: 'd-1', grant_type: 'urn:ietf:params:oauth:grant-type:device_code' })
})

t.test('a device gives up when the person refuses, or the code has ended', async t => {
  const device = { device_code: 'd', user_code: 'u', verification_uri: issuer, expires_in: 20 }
  const endWith = (answer: object) => {
    const server = tokenServer()
    server.onAsk = () =>
      Object.assign(server, server.asked.length === 1 ? { status: 200, answer: device } : { status: 400, answer })
    const consent = consentTo(server)
    return deviceConsent(consent, { onPrompt: () => {}, wait: async () => {} }).catch(error => [error, server])
  }
  t.match(await endWith({ error: 'access_denied' }), [{ message: /denied at the server/ }])
  const [error, server] = (await endWith({ error: 'authorization_pending' })) as [Error, TokenServer]
  t.match(error, { kind: 'needed', message: /not entered in time/ })
  t.equal(server.asked.length, 5, 'every 5 s when the server names no pause')
})

t.test('a server without a document has its addresses from the command, https alone', async t => {
  const server = tokenServer()
  const own = { Issuer: undefined, TokenUrl: `${issuer}/token` }
  const consent = consentTo(server, own)
  const ways = { onPrompt: () => {}, wait: async () => {} }
  t.match(await beginCodeConsent(consent, redirectUri).catch(error => error), { message: /--authorization-url/ })
  t.match(await deviceConsent(consent, ways).catch(error => error), { message: /--device-url/ })
  const plain = { ...consent, authorizationUrl: 'http://idp.example/consent' }
  t.match(await beginCodeConsent(plain, redirectUri).catch(error => error), { message: /--authorization-url/ })
  const { url } = await beginCodeConsent({ ...consent, authorizationUrl: `${issuer}/other` }, redirectUri)
  t.match(url, /^https:\/\/idp\.example\/other\?/)
  Object.assign(server, { status: 400, answer: { error: 'unauthorized_client' } })
  const asked = deviceConsent({ ...consent, deviceUrl: `${issuer}/device` }, ways)
  t.match(await asked.catch(error => error), { message: /unauthorized_client/ })
})
