/** Clients that the gateway makes itself, and how long they are good. Threats T89 and T91. */
import t from 'tap'
import { clientDocument } from '../../src/credentials/client-document.ts'
import { OwnClients } from '../../src/credentials/own-clients.ts'
import type { StoredCredential } from '../../src/storage/credentials.ts'
import { createClock } from '../fixtures/clock.ts'
import { clientSetting, tokenServer } from '../fixtures/token-server.ts'

const issuer = 'https://idp.example'
const origin = 'https://gateway.example'
const setting = clientSetting({
  ...{ Name: 'mail', Type: 'Connect', Issuer: issuer, TokenUrl: undefined },
  ...{ ClientId: undefined, Secret: undefined },
})

/** A gateway, and a server that registers clients `c-1`, `c-2` and so on. */
function open(more: object = {}, at: string = origin) {
  const clock = createClock(1_000_000_000_000)
  const server = tokenServer()
  const endpoints = { token_endpoint: `${issuer}/token`, registration_endpoint: `${issuer}/register` }
  server.documents.set(`${issuer}/.well-known/openid-configuration`, { issuer, ...endpoints, ...more })
  const given = { client_secret: 'secret-canary', client_secret_expires_at: 0 }
  let registered = 0
  server.onAsk = ({ url }) => {
    const isNew = url.endsWith('/register')
    server.status = isNew ? 201 : 200
    server.answer = isNew ? { client_id: `c-${++registered}`, ...given } : undefined
  }
  let row: StoredCredential | undefined
  const trail: object[] = []
  const table = {
    of: async () => row,
    async put(next: StoredCredential, { entry }: { readonly entry?: object | undefined }) {
      if ((row?.version ?? 0) !== next.version - 1) return false
      row = next
      if (entry !== undefined) trail.push(entry)
      return true
    },
  }
  const sourceParts = {
    clock,
    ownRequests: server,
    servers: new Map(),
    secrets: { read: async () => 'settings-canary' },
  }
  const make = (to: string | undefined) =>
    new OwnClients({ table, sealingKeys: [Buffer.alloc(32, 1)], sourceParts, clock, origin: to })
  const clients = make(at)
  const noteOf = (details: Readonly<Record<string, unknown>>) => ({
    at: 0,
    actor: 'a',
    action: 'b',
    subject: 'c',
    requestId: null,
    details,
  })
  const consent = async (of = clients, what = setting) => (await of.forConsent(what, noteOf)).clientId
  const renew = (clientId: string | undefined, of = clients) =>
    of.redeem(
      setting,
      {
        refreshToken: 'r',
        before: Number.POSITIVE_INFINITY,
        account: { by: 'a', at: 0, scope: null, login: null, clientId },
      },
      new AbortController().signal,
    )
  return {
    clock,
    server,
    given,
    table,
    trail,
    clients,
    make,
    noteOf,
    consent,
    renew,
    sealed: () => row?.sealed ?? Buffer.of(),
  }
}

t.test('a client is registered once, for the consents of all accounts, and asks with its secret', async t => {
  const { consent, renew, server, trail, sealed } = open()
  t.strictSame([await consent(), await consent()], ['c-1', 'c-1'])
  t.equal(server.asked.length, 1)
  t.match(trail, [{ details: { issuer, clientId: 'c-1' } }])
  t.notMatch(JSON.stringify(trail), 'canary')
  t.notOk(Buffer.from(sealed()).includes('canary'))
  t.match(await renew('c-1'), { value: 'token-2' })
  const basic = `Basic ${Buffer.from('c%2D1:secret%2Dcanary').toString('base64')}`
  t.equal(server.asked.at(-1)?.fields['authorization'], basic)
})

t.test(
  'when its secret ends, the next consent registers another one, and nothing is asked with the old one',
  async t => {
    const { clock, consent, renew, server, given } = open()
    given.client_secret_expires_at = clock.now() / 1_000 + 3_600
    t.equal(await consent(), 'c-1')
    clock.advance(2_999_000)
    t.equal(await consent(), 'c-1')
    clock.advance(1_000)
    given.client_secret_expires_at = 0
    t.match(await renew('c-1'), { value: /token/ }, 'it is good to its end')
    t.equal(await consent(), 'c-2', 'a consent would outlast it')
    const { length } = server.asked
    await t.rejects(renew('c-1'), { kind: 'needed', message: /connect the account again/ })
    await t.rejects(renew(undefined), { kind: 'needed', message: /connect/ })
    t.equal(server.asked.length, length)
  },
)

t.test('a secret that has ended is not sent', async t => {
  const { clock, consent, renew, server, given } = open()
  given.client_secret_expires_at = clock.now() / 1_000 + 3_600
  await consent()
  clock.advance(3_600_000)
  await t.rejects(renew('c-1'), { kind: 'needed', message: /is another one/ })
  t.equal(server.asked.length, 1)
})

t.test('a client that its server has forgotten is registered again by the next consent, and not before', async t => {
  const { consent, renew, server } = open()
  await consent()
  const answers = server.onAsk
  server.onAsk = () => Object.assign(server, { status: 401, answer: { error: 'invalid_client' } })
  await t.rejects(renew('c-1'), { code: 'invalid_client' })
  server.onAsk = answers
  await t.rejects(renew('c-1'), { kind: 'needed', message: /is another one/ })
  t.equal(server.asked.length, 2)
  t.equal(await consent(), 'c-2')
  server.onAsk = () => Object.assign(server, { status: 400, answer: { error: 'server_error' } })
  await t.rejects(renew('c-2'), { message: /server_error/ })
  server.onAsk = answers
  t.match(await renew('c-2'), { value: /token/ }, 'another failure says nothing about the client')
})

t.test('a client is used at the server, and for the address, that it was registered for alone', async t => {
  const { consent, renew, make, server, clients } = open()
  await consent()
  const elsewhere = { ...setting, Issuer: 'https://evil.example' }
  server.documents.set('https://evil.example/.well-known/openid-configuration', {
    ...{ issuer: 'https://evil.example', token_endpoint: 'https://evil.example/token' },
  })
  const { length } = server.asked
  await t.rejects(
    clients.use(elsewhere, { clientId: 'c-1' }, async () => 'asked'),
    { message: /is another one/ },
  )
  await t.rejects(consent(clients, elsewhere), { message: /registers no clients/ })
  t.equal(server.asked.length, length, 'no secret went there')
  const moved = make('https://other.example')
  await t.rejects(renew('c-1', moved), { message: /is another one/ })
  t.equal(await consent(moved), 'c-2')
})

t.test('of two gateways that register at once one client stays', async t => {
  const { consent, table } = open()
  const put = table.put
  table.put = async () => false
  await t.rejects(consent(), { message: /at this moment/ })
  table.put = put
  t.equal(await consent(), 'c-2')
})

t.test('where the server reads documents, its id is the address of one, without a secret', async t => {
  const more = { client_id_metadata_document_supported: true }
  const { consent, renew, server } = open(more)
  const id = `${origin}/oauth-clients/mail`
  t.equal(await consent(), id)
  await renew(id)
  t.match(server.asked[0]?.form, { client_id: id, client_secret: undefined })
  t.equal(server.asked[0]?.fields['authorization'], undefined)
  t.equal(await open(more, 'http://gateway.example').consent(), 'c-1', 'servers read documents over TLS alone')
  t.match(clientDocument(setting, origin), {
    client_id: id,
    redirect_uris: [`${origin}/console/connected/mail`],
    token_endpoint_auth_method: 'none',
  })
  for (const [other, at] of [
    [setting, 'http://gateway.example'],
    [setting, undefined],
    [{ ...setting, ClientId: 'own' }, origin],
    [{ ...setting, Type: 'RefreshToken' as const }, origin],
  ] as const)
    t.equal(clientDocument(other, at), undefined)
})

t.test('a client of the settings is used as it is', async t => {
  const { clients, consent, server } = open()
  const own = { ...setting, ClientId: 'own' }
  t.equal(await consent(clients, own), 'own')
  t.equal(await clients.use(own, { clientId: 'c-1' }, async use => use.setting.ClientId), 'own')
  t.equal(server.asked.length, 0)
})

t.test(
  'what one server has granted is sent to no other, and revoked there, whatever client it was granted to',
  async t => {
    const more = { revocation_endpoint: `${issuer}/revoke` }
    const document = { client_id_metadata_document_supported: true }
    const asked = async () => 'asked'
    const evil = { Issuer: 'https://evil.example', ClientAuth: 'Post', Secret: 'key' } as const
    const own = { ...setting, ClientId: 'own', Secret: 'key' }
    const registered = `Basic ${Buffer.from('c%2D1:secret%2Dcanary').toString('base64')}`
    for (const [{ clients, server, noteOf }, what, id, authorization] of [
      [open({ ...more, ...document }), setting, `${origin}/oauth-clients/mail`, undefined],
      [open(more), own, 'own', undefined],
      [open(more), setting, undefined, registered],
    ] as const) {
      const by = await clients.forConsent(what, noteOf)
      t.equal(by.server, issuer)
      t.equal(await clients.use(what, by, asked), 'asked')
      const message = /server or the client .* is another one by now/
      const { length } = server.asked
      await t.rejects(clients.use({ ...what, ...evil }, by, asked), { message })
      t.equal(server.asked.length, length)
      const revoked = { token: 'refresh-canary', hint: 'refresh_token', grantedBy: by } as const
      for (const now of [
        { ...what, ...evil },
        { ...what, ...evil, ClientId: 'new' },
      ]) {
        t.equal(await clients.revoke(now, revoked), true)
        const { url, fields, form } = server.asked.at(-1)!
        t.match({ url, form }, { url: `${issuer}/revoke`, form: { token: 'refresh-canary', client_secret: undefined } })
        t.strictSame([form['client_id'], fields['authorization']], [id, authorization])
      }
      const elsewhere = { ...what, Resource: 'https://api.example' }
      await t.rejects(clients.use(elsewhere, by, asked), { message })
      t.equal(await clients.revoke(elsewhere, revoked), true, 'of the same server')
    }
  },
)

t.test('a document that names an address without TLS, or none, is of no use', async t => {
  for (const at of ['http://idp.example/register', '//idp.example', 7, 'file:///etc/passwd']) {
    const { consent, server } = open({ registration_endpoint: at })
    await t.rejects(consent(), { message: /names no https address as registration_endpoint/ })
    t.equal(server.asked.length, 0)
  }
})

t.test('documents and statuses that no server should send are told as what they are', async t => {
  const isTold = async ({ consent }: ReturnType<typeof open>, of: string) => {
    const error = await consent().catch(found => found)
    t.match(error, { name: 'CredentialError', kind: 'failing' }, of)
  }
  for (const odd of [
    { issuer: 'no address' },
    { authorization_endpoint: [`${issuer}/consent`] },
    { token_endpoint_auth_methods_supported: 7 },
    { token_endpoint_auth_methods_supported: null },
  ])
    await isTold(open(odd), JSON.stringify(odd))
  for (const method of ['GET', 'POST']) {
    for (const status of [205, 304, 600, 999]) {
      const opened = open()
      const { ask } = opened.server
      opened.server.ask = async (message, ...rest) => {
        const answer = await ask(message, ...rest)
        return message.method === method ? { ...answer, status } : answer
      }
      await isTold(opened, `${method} ${status}`)
    }
  }
})
