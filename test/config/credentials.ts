import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'

const key = { Name: 'key', FromEnv: 'KEY' }

/** What is wrong with one credential. */
function problemOf(credential: object, secrets: readonly object[] = [key]): string | undefined {
  const text = JSON.stringify({ Secrets: secrets, Credentials: [{ Name: 'one', ...credential }] })
  const loaded = loadConfig({ file: { path: 'gateway.yaml', text }, env: {} })
  return 'problems' in loaded ? JSON.stringify(loaded.problems) : undefined
}

const refresh = { Type: 'RefreshToken', ClientId: 'me', TokenUrl: 'https://idp.example/token' }

t.test('a credential that asks a server names it in one way', async t => {
  for (const Type of ['ClientCredentials', 'RefreshToken', 'TokenExchange']) {
    const own = { Type, ClientId: 'me', Secret: 'key' }
    t.match(problemOf(own), new RegExp(`Issuer or TokenUrl must be set for ${Type}`))
    t.equal(problemOf({ ...own, Issuer: 'https://idp.example' }), undefined)
    const both = { ...own, Issuer: 'https://idp.example', TokenUrl: 'https://idp.example/token' }
    t.match(problemOf(both), /Issuer and TokenUrl must not both be set/)
  }
  t.equal(problemOf({ Type: 'JwtBearer', Secret: 'key', Issuer: 'https://idp.example' }), undefined)
  t.match(problemOf({ Secret: 'key', Issuer: 'https://idp.example' }), /Issuer must not be set for Value/)
  t.match(problemOf({ ...refresh, Secret: 'key', Issuer: 'http://idp.example' }), /https/)
})

t.test('a public client has no secret, and others have one', async t => {
  t.equal(problemOf({ ...refresh, ClientAuth: 'None' }), undefined)
  t.match(problemOf({ ...refresh, ClientAuth: 'None', Secret: 'key' }), /Secret must not be set with ClientAuth None/)
  t.match(problemOf(refresh), /Secret must name an entry of Secrets/)
  const machine = { ...refresh, Type: 'ClientCredentials', ClientAuth: 'None' }
  t.match(problemOf(machine), /ClientAuth None is of RefreshToken alone/)
})

t.test('the first refresh token is a secret, of that type alone', async t => {
  t.equal(problemOf({ ...refresh, Secret: 'key', RefreshToken: 'key' }), undefined)
  t.match(problemOf({ ...refresh, Secret: 'key', RefreshToken: 'none' }), /RefreshToken must name an entry of Secrets/)
  t.match(problemOf({ Secret: 'key', RefreshToken: 'key' }), /RefreshToken must not be set for Value/)
})
