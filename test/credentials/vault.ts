/** Tokens of Vault and OpenBao: log in, renew, revoke. */
import t from 'tap'
import type { CredentialSetting, SecretSetting } from '../../src/config/credentials.ts'
import type { GiveBack } from '../../src/credentials/given-back.ts'
import { CredentialKeeper } from '../../src/credentials/keeper.ts'
import { readSecretUrl } from '../../src/credentials/secret-url.ts'
import { sources } from '../../src/credentials/sources.ts'
import { createClock } from '../fixtures/clock.ts'
import { clientSetting, type TokenServer, tokenServer } from '../fixtures/token-server.ts'

const login = 'https://vault.example:8200/v1/auth/approle/login'
const base = clientSetting({ Type: 'Vault', TokenUrl: login, ClientId: undefined })

function obtain(server: TokenServer, more: Partial<CredentialSetting>, current?: string, kept: GiveBack[] = []) {
  const secrets = { read: async () => 'the-secret' }
  const givenBack = { keep: (_: string, give: GiveBack) => void kept.push(give) }
  const parts = { clock: createClock(), ownRequests: server, servers: new Map(), secrets, current, givenBack }
  return sources.Vault({ ...base, ...more }, parts, new AbortController().signal)
}

const secret: SecretSetting = {
  ...{ Name: 'db', FromEnv: undefined, FromFile: undefined, FromCommand: [], Pointer: undefined, Encoding: 'Text' },
  ...{
    FromUrl: 'https://vault.example:8200/v1/secret/data/db',
    Credential: 'login',
    Body: undefined,
    EverySeconds: 300,
  },
}

const tokenOf = (token: unknown, seconds: unknown = 3_600) => ({
  auth: { client_token: token, lease_duration: seconds },
})

t.test('an AppRole logs in with two ids, others with a role and the token of the workload', async t => {
  const server = tokenServer()
  server.answer = tokenOf('hvs.1')
  t.strictSame(await obtain(server, { ClientId: 'role-id' }), { value: 'hvs.1', lifetimeMs: 3_600_000 })
  t.match(server.asked, [{ url: login, body: '{"role_id":"role-id","secret_id":"the-secret"}' }])
  const TokenUrl = 'https://vault.example/v1/auth/kubernetes/login'
  await obtain(server, { Subject: 'gateway', TokenUrl })
  t.match(server.asked[1], { url: TokenUrl, body: '{"role":"gateway","jwt":"the-secret"}' })
  server.answer = tokenOf('hvs.root', 0)
  t.equal((await obtain(server, { ClientId: 'r' })).lifetimeMs, 3_600_000, 'one without an end is looked at each hour')
})

t.test('a token is renewed; one near its greatest age is replaced', async t => {
  const server = tokenServer()
  server.answer = tokenOf('hvs.1', 7_200)
  t.strictSame(await obtain(server, { ClientId: 'r' }, 'hvs.1'), { value: 'hvs.1', lifetimeMs: 7_200_000 })
  t.match(server.asked, [
    { url: 'https://vault.example:8200/v1/auth/token/renew-self', fields: { 'x-vault-token': 'hvs.1' } },
  ])
  for (const left of [tokenOf('hvs.1', 60), undefined]) {
    const other = tokenServer()
    other.onAsk = ({ url }) => {
      const isRenewal = url.endsWith('/renew-self')
      other.status = isRenewal && left === undefined ? 403 : 200
      other.answer = isRenewal ? (left ?? {}) : tokenOf('hvs.2')
    }
    const kept: GiveBack[] = []
    t.equal((await obtain(other, { ClientId: 'r' }, 'hvs.1', kept)).value, 'hvs.2')
    t.equal(kept.length, 1)
    await kept[0]?.(new AbortController().signal)
    t.strictSame(
      other.asked.map(({ url, fields }) => [new URL(url).pathname, fields['x-vault-token']]),
      [
        ['/v1/auth/token/renew-self', 'hvs.1'],
        ['/v1/auth/approle/login', undefined],
        ['/v1/auth/token/revoke-self', 'hvs.2'],
      ],
    )
  }
})

t.test('a token that its store refuses is not renewed: the gateway logs in again', async t => {
  const server = tokenServer()
  let logins = 0
  server.onAsk = ({ url, fields }) => {
    server.answer = tokenOf(url.endsWith('/renew-self') ? fields['x-vault-token'] : `hvs.${++logins}`)
  }
  const clock = createClock()
  const setting = { ...base, Name: 'login' }
  const parts = { clock, ownRequests: server, servers: new Map(), secrets: { read: async () => 'the-secret' } }
  const keeper = new CredentialKeeper(setting, {
    ...{ clock, onState: () => {}, onAttempt: () => {} },
    obtain: (signal, current) => sources.Vault(setting, { ...parts, current }, signal),
  })
  const need = (_: string, refused: number | undefined) => keeper.renewed(refused)
  const ownRequests: typeof server = Object.assign(tokenServer(), {
    async ask({ headers }: Parameters<typeof server.ask>[0]) {
      const isGood = headers.includes('hvs.2')
      return { status: isGood ? 200 : 403, fields: [], body: Buffer.from(isGood ? 'the document' : '{}') }
    },
  })
  const asked = { ownRequests, clock, credentials: [setting], need, signal: new AbortController().signal }
  t.match(await readSecretUrl(secret, asked), { text: 'the document', version: 2 })
  t.strictSame(
    server.asked.map(({ url }) => new URL(url).pathname),
    ['/v1/auth/approle/login', '/v1/auth/approle/login'],
  )
  clock.advance(3_500_000)
  t.equal((await keeper.renewed(undefined)).value, 'hvs.2')
  t.match(server.asked.at(-1), { url: /renew-self$/ }, 'one that is not refused is renewed')
  await keeper.restart()
  t.equal(keeper.state.value, 'hvs.3', 'a new secret is tried at once')
  server.onAsk = ({ url }) => {
    server.status = url.endsWith('/login') ? 400 : 200
  }
  await keeper.restart()
  t.match(keeper.state, { value: 'hvs.3', problem: { kind: 'failing' } }, 'one that does not work leaves the token')
})

t.test('a failure is told without the answer or the secret', async t => {
  const server = tokenServer()
  const cases: [number, unknown][] = [
    [400, { errors: ['the-secret'] }],
    [200, 'the-secret'],
    [200, { auth: null }],
    [200, tokenOf('the-secret', 'long')],
    [200, tokenOf('two\nlines the-secret')],
  ]
  for (const [status, answer] of cases) {
    Object.assign(server, { status, answer })
    const error = await obtain(server, { ClientId: 'r' }).catch(error => error)
    t.equal(error.kind, 'failing', JSON.stringify(answer))
    t.notMatch(error.message, /the-secret/)
  }
})
