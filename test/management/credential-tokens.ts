/** Refresh tokens, from a person's grant to its end. Threat T87. */
import { readdirSync, readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { secureCaFile, secureName, startSecureOrigin } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'

let valid = 'granted-canary-0'
let issued = 0
const revoked: (string | undefined)[] = []
const documents: string[] = []

const server = await startSecureOrigin(t, async (req, res) => {
  if (req.url === '/.well-known/openid-configuration') {
    documents.push(req.url)
    const [tokenEndpoint, revocationEndpoint] = [`${server.url}/token`, `${server.url}/revoke`]
    res.end(
      JSON.stringify({ issuer: server.url, token_endpoint: tokenEndpoint, revocation_endpoint: revocationEndpoint }),
    )
  } else if (req.url === '/token') await answerToken(req, res)
  else if (req.url === '/revoke') {
    revoked.push(Object.fromEntries(new URLSearchParams(await text(req)))['token'])
    res.end()
  } else res.end(req.headers.authorization)
})

async function answerToken(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { refresh_token, client_id } = Object.fromEntries(new URLSearchParams(await text(req)))
  res.writeHead(refresh_token === valid && client_id === 'gateway' ? 200 : 400, { 'content-type': 'application/json' })
  if (refresh_token !== valid) res.end(JSON.stringify({ error: 'invalid_grant' }))
  else {
    issued += 1
    valid = `refresh-canary-${issued}`
    res.end(JSON.stringify({ access_token: `access-canary-${issued}`, refresh_token: valid, expires_in: 3_600 }))
  }
}

const directory = testdir(t, { policies: {} })
const settings = {
  directory,
  lookup: async () => ['127.0.0.1'],
  alone: 'its credentials are connected',
  env: { KEY: 'fixed-value' },
  config: {
    Proxy: { CaFile: secureCaFile },
    Secrets: [{ Name: 'key', FromEnv: 'KEY' }],
    Credentials: [
      { Name: 'calendar', Type: 'RefreshToken', Issuer: server.url, ClientId: 'gateway', ClientAuth: 'None' },
      { Name: 'fixed', Secret: 'key' },
    ],
    Upstreams: [{ Host: `${secureName}:${server.port}`, Credential: 'calendar' }],
  },
}
const gateway = await startGateway(t, settings)
const { manage } = gateway
const { token } = await gateway.agent()
const call = () => gateway.proxy(token, `${server.url}/api`)
const shown = async () => JSON.parse((await manage('GET', '/credentials/calendar')).text)
const actions = async () =>
  JSON.parse((await manage('GET', '/audit?subject=calendar')).text).items.map(
    ({ action }: { action: string }) => action,
  )

t.test('before anybody has connected it, calls are refused with its name, and people are told once', async t => {
  for (let times = 0; times < 2; times++) {
    const answer = await call()
    t.equal(answer.status, 403)
    t.match(await answer.json(), { code: 'credential_needed', credential: 'calendar' })
  }
  t.match(await shown(), { type: 'RefreshToken', state: 'needed', usable: false, lastUsedAt: null })
  t.strictSame(await eventually(actions, ({ length }) => length > 0), ['credential.failed'])
  t.equal(server.seen.length, 0)
})

t.test('a token that an admin stores is exchanged when a request needs it, and kept sealed', async t => {
  const body = { refreshToken: 'granted-canary-0' }
  const auditor = await gateway.agent({ roles: ['auditor'] })
  t.equal((await manage('PUT', '/credentials/calendar/token', body, auditor.token)).status, 403)
  t.equal((await manage('DELETE', '/credentials/calendar/token', undefined, auditor.token)).status, 403)
  t.equal((await manage('PUT', '/credentials/none/token', body)).status, 404)
  t.equal((await manage('PUT', '/credentials/fixed/token', body)).status, 409)
  t.equal((await manage('DELETE', '/credentials/fixed/token')).status, 409)
  t.equal((await manage('PUT', '/credentials/calendar/token', { refreshToken: 'a\nb' })).status, 400)
  const put = await manage('PUT', '/credentials/calendar/token', body)
  t.equal(put.status, 200)
  t.match(JSON.parse(put.text), { state: 'unused', problem: null })
  t.equal(await (await call()).text(), 'Bearer access-canary-1')
  const { lastUsedAt } = await eventually(shown, view => view.lastUsedAt !== null)
  t.match(await shown(), { state: 'ready', usable: true, problem: null })
  t.ok(Date.parse(lastUsedAt) > 0)
  t.equal(documents.length, 1)
})

t.test('a renewal rotates the token, with an entry; the next one uses the new token', async t => {
  for (let times = 0; times < 2; times++) {
    t.match(JSON.parse((await manage('POST', '/credentials/calendar/renew')).text), { state: 'ready' })
  }
  t.equal(await (await call()).text(), 'Bearer access-canary-3')
  t.equal((await actions()).filter((action: string) => action === 'credential.renewed').length, 3)
  t.equal(documents.length, 1, 'the document is read once')
})

t.test('no token is stored in clear, logged or shown', async t => {
  const data = join(directory, 'data')
  const stored = readdirSync(data).map(file => readFileSync(join(data, file), 'latin1'))
  const seen = [...stored, JSON.stringify(gateway.log)]
  for (const path of ['/credentials', '/audit', '/metrics', '/overview']) seen.push((await manage('GET', path)).text)
  t.ok(seen.every(one => !one.includes('canary')))
  t.ok(seen.join().includes('credential.renewed'))
})

t.test('a grant that is disconnected is sent no more, and revoked at its server', async t => {
  t.strictSame(JSON.parse((await manage('DELETE', '/credentials/calendar/token')).text), { revoked: true })
  t.strictSame(revoked, [valid])
  const before = server.seen.length
  t.equal((await call()).status, 403)
  t.equal(server.seen.length, before)
  t.ok((await actions()).includes('credential.disconnected'))
  t.strictSame(JSON.parse((await manage('DELETE', '/credentials/calendar/token')).text), { revoked: false })
})

t.test('what was stored for one server is sent to no other, when the settings name that', async t => {
  await manage('PUT', '/credentials/calendar/token', { refreshToken: 'moved-canary' })
  await gateway.close()
  const asked: (string | undefined)[] = []
  const other = await startSecureOrigin(t, async (req, res) => {
    asked.push(Object.fromEntries(new URLSearchParams(await text(req)))['refresh_token'])
    res.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}')
  })
  const Credentials = settings.config.Credentials.map(one =>
    one.Name === 'calendar' ? { ...one, Issuer: undefined, TokenUrl: `${other.url}/token` } : one,
  )
  const again = await startGateway(t, { ...settings, config: { ...settings.config, Credentials } })
  const answer = await again.proxy(token, `${server.url}/api`)
  t.match(await answer.json(), { code: 'credential_needed' })
  t.strictSame(asked, [])
})
