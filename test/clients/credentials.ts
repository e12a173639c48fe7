/** Credentials of real servers: oidc-provider, whose people consent and whose tokens rotate, and oauth2-mock-server. Threat T87. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Events, OAuth2Server } from 'oauth2-mock-server'
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { loopbackCaFile, startLoopbackOrigin } from '../fixtures/origin.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { consentAt, startConsentProvider } from './fixtures/consent-provider.ts'

const provider = await startConsentProvider(t)
const mock = new OAuth2Server(loopbackCaFile.replace('cert.pem', 'key.pem'), loopbackCaFile)
await mock.issuer.keys.generate('RS256')
await mock.start(0, '127.0.0.1')
t.teardown(() => mock.stop())
mock.issuer.url = `https://127.0.0.1:${mock.address().port}`
const api = await startLoopbackOrigin(t, (req, res) => res.end(req.headers.authorization))

const host = `127.0.0.1:${api.port}`
const config = {
  Proxy: { CaFile: loopbackCaFile },
  Secrets: [{ Name: 'key', FromEnv: 'KEY' }],
  Credentials: [
    {
      ...{ Name: 'calendar', Type: 'RefreshToken', Issuer: provider.issuer, ClientId: provider.clientId },
      ...{ ClientAuth: 'None', Scope: 'openid offline_access' },
    },
    { Name: 'machine', Type: 'ClientCredentials', Issuer: mock.issuer.url, ClientId: 'gateway', Secret: 'key' },
  ],
  Upstreams: [
    { Host: host, Paths: ['/calendar'], Credential: 'calendar' },
    { Host: host, Paths: ['/machine'], Credential: 'machine' },
  ],
}
const gateway = await startGateway(t, { alone: 'its credentials are connected', env: { KEY: 'secret' }, config })
writeFileSync(join(gateway.directory, 'gateway.yaml'), JSON.stringify(config))
const env = {
  ...{ KEY: 'secret', SYSTEM__SERVER__HTTP__PORT: String(gateway.port), AGENT_GATEWAY_TOKEN: gateway.adminToken },
}
const { token } = await gateway.agent()
const call = async (path: string) => {
  const answer = await gateway.proxy(token, api.url + path)
  return [answer.status, await answer.text()] as const
}
const view = async () => JSON.parse((await gateway.manage('GET', '/credentials/calendar')).text)

function begin(...args: string[]) {
  const file = join(gateway.directory, 'gateway.yaml')
  const shell = fakeShell(['credential', ...args, '--config', file], env)
  return { shell, code: runCommand(shell), lines: () => shell.complained.join('\n') }
}

t.test('a person consents in a browser, and calls have the token; each renewal rotates it', async t => {
  t.equal((await call('/calendar'))[0], 403)
  const command = begin('connect', 'calendar', '--param', 'prompt=consent')
  const url = await eventually(
    () => /^https:\S+/m.exec(command.lines())?.[0] ?? '',
    found => found !== '',
  )
  const back = await consentAt(url)
  t.match(back, /^http:\/\/127\.0\.0\.1:\d+\/callback\?code=/)
  t.equal((await fetch(back)).status, 200)
  t.equal(await command.code, 0, command.lines())
  const [status, sent] = await call('/calendar')
  t.equal(status, 200)
  t.match(sent, /^Bearer \S{20,}$/)
  for (let times = 0; times < 10; times++) t.equal(await begin('test', 'calendar').code, 0)
  t.equal(new Set(provider.refreshTokens).size, 12)
  t.not((await call('/calendar'))[1], sent)
})

t.test(
  'a token that somebody else has used again takes back the grant: people are asked, and nothing is sent',
  async t => {
    t.match(await provider.reuse(provider.refreshTokens[3]!), { status: 400 })
    t.equal(await begin('test', 'calendar').code, 1)
    t.match(await view(), { state: 'needed', usable: false })
    const before = api.seen.length
    t.match(await call('/calendar'), [403, /credential_needed/])
    t.equal(api.seen.length, before)
  },
)

t.test('a person consents on another machine, and takes it back at the server', async t => {
  const command = begin('connect', 'calendar', '--device', '--param', 'prompt=consent')
  const [, url = '', code = ''] = await eventually(
    () => /Open (\S+) and enter (\S+)/.exec(command.lines()) ?? [],
    found => found.length > 0,
  )
  t.match(await consentAt(url, code), /success|signed in|continue/i)
  t.equal(await command.code, 0, command.lines())
  t.equal((await call('/calendar'))[0], 200)
  const last = provider.refreshTokens.at(-1)!
  const end = begin('disconnect', 'calendar')
  t.equal(await end.code, 0)
  t.match(end.shell.printed, [/its token revoked/])
  t.match(await provider.reuse(last), { status: 400, text: /invalid_grant/ })
  t.equal((await call('/calendar'))[0], 403)
})

t.test('client credentials of a server that is found by its document', async t => {
  const answers: string[] = []
  mock.service.on(Events.BeforeResponse, ({ body }) => answers.push(String(body['access_token'])))
  const [status, sent] = await call('/machine')
  t.equal(status, 200)
  t.equal(sent, `Bearer ${answers[0]}`)
  mock.service.once(Events.BeforeResponse, response => {
    response.statusCode = 500
    response.body = { error: 'server_error' }
  })
  t.equal(await begin('test', 'machine').code, 1)
  t.equal((await call('/machine'))[0], 200, 'the old token is sent until its end')
})
