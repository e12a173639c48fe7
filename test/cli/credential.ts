/** The commands `credential list`, `test`, `connect` and `disconnect`, against a running gateway. Threat T87. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { loopbackCaFile, startLoopbackOrigin } from '../fixtures/origin.ts'
import { fakeShell } from '../fixtures/shell.ts'

let issued = 0
let isDown = false
let canRevoke = false
const revoked: (string | undefined)[] = []
const forms: Record<string, string>[] = []
const server = await startLoopbackOrigin(t, async (req, res) => {
  const at = (path: string) => server.url + path
  const endpoints = {
    ...{ issuer: server.url, authorization_endpoint: at('/consent'), token_endpoint: at('/token') },
    device_authorization_endpoint: at('/device'),
    ...(canRevoke && { revocation_endpoint: at('/revoke') }),
  }
  const form = Object.fromEntries(new URLSearchParams(await text(req)))
  if (req.url === '/.well-known/openid-configuration') res.end(JSON.stringify(endpoints))
  else if (req.url === '/device') {
    const codes = { device_code: 'd-1', user_code: 'AB-CD\n\u001b[2J', expires_in: 60, interval: 1 }
    res.end(JSON.stringify({ ...codes, verification_uri: at('/enter') }))
  } else if (req.url === '/revoke') {
    revoked.push(form['token'])
    res.end()
  } else if (isDown) res.writeHead(503).end()
  else {
    issued += 1
    forms.push(form)
    res.end(JSON.stringify({ access_token: `access-${issued}`, refresh_token: `refresh-${issued}`, expires_in: 3_600 }))
  }
})
const config = {
  Proxy: { CaFile: loopbackCaFile },
  Secrets: [{ Name: 'key', FromEnv: 'KEY' }],
  Credentials: [
    { Name: 'calendar', Type: 'RefreshToken', Issuer: server.url, ClientId: 'gateway', Secret: 'key' },
    { Name: 'fixed', Secret: 'key' },
    { Name: 'mail', Type: 'Connect', Issuer: server.url, ClientId: 'gateway', ClientAuth: 'None' },
    { Name: 'team', Type: 'Connect', Per: 'Owner', Issuer: server.url, ClientId: 'gateway', ClientAuth: 'None' },
  ],
  Upstreams: [{ Host: '127.0.0.1:1', Credential: 'calendar' }],
}
const gateway = await startGateway(t, {
  alone: 'its credentials are connected',
  env: { KEY: 'client secret' },
  config,
})
writeFileSync(join(gateway.directory, 'gateway.yaml'), JSON.stringify(config))
const env = {
  ...{ KEY: 'client secret', SYSTEM__SERVER__HTTP__PORT: String(gateway.port) },
  AGENT_GATEWAY_TOKEN: gateway.adminToken,
}
/** Begins a command, in this process. */
function begin(...args: string[]) {
  const shell = fakeShell(['credential', ...args, '--config', `${gateway.directory}/gateway.yaml`], env)
  return { shell, code: runCommand(shell) }
}
async function run(...args: string[]) {
  const { shell, code } = begin(...args)
  return { code: await code, out: shell.printed.join('\n'), err: shell.complained.join('\n') }
}
/** The address that the person is to open. */
const shownTo = async ({ shell }: ReturnType<typeof begin>) => {
  const lines = () => shell.complained.join('\n')
  const found = await eventually(
    () => /^https:\S+/m.exec(lines())?.[0],
    url => url !== undefined,
  )
  return new URL(found!)
}

t.test('credentials are listed without values', async t => {
  const { code, out } = await run('list')
  t.equal(code, 0)
  t.match(out, /^CREDENTIAL +TYPE +STATE/)
  t.match(out, /\ncalendar +RefreshToken +unused +- +- +127\.0\.0\.1:1/)
  t.match(JSON.parse((await run('list', '--json')).out), { ok: true, credentials: [{ name: 'calendar' }, {}, {}, {}] })
  t.notMatch(out, /client secret/)
})

t.test('one that nobody has connected fails its test, and a name is needed', async t => {
  t.match(await run('test', 'calendar'), { code: 1, out: '', err: /needed\. A person must grant access/ })
  t.match(await run('test'), { code: 2, err: /name a credential/ })
  t.match(await run('test', 'fixed'), { code: 0, out: 'fixed: ready' })
  t.match(await run('test', 'none'), { code: 1, err: /answered 404/ })
  t.match(JSON.parse((await run('test', 'calendar', '--json')).out), { ok: false, state: 'needed' })
})

t.test('a person consents in a browser of this machine; no other page can answer', async t => {
  const command = begin('connect', 'calendar', '--param', 'access_type=offline')
  const url = await shownTo(command)
  t.equal(url.searchParams.get('access_type'), 'offline')
  const back = url.searchParams.get('redirect_uri') ?? ''
  t.match(back, /^http:\/\/127\.0\.0\.1:\d+\/callback$/)
  for (const wrong of ['?code=evil&state=guess', '?code=evil', '']) t.equal((await fetch(back + wrong)).status, 400)
  const answer = `${back}?code=c-1&state=${url.searchParams.get('state')}`
  t.equal((await fetch(answer, { method: 'POST' })).status, 400)
  t.equal((await fetch(answer)).status, 200)
  t.equal(await command.code, 0)
  t.strictSame(command.shell.printed, ['calendar: ready'])
  t.match(forms, [{ grant_type: 'authorization_code', code: 'c-1' }, { refresh_token: 'refresh-1' }])
})

t.test('a person consents on another machine', async t => {
  forms.length = 0
  const command = begin('connect', 'calendar', '--device', '--json')
  t.equal(await command.code, 0)
  t.match(command.shell.complained, [`Open ${server.url}/enter and enter AB-CD\\u{a}\\u{1b}[2J`])
  t.match(JSON.parse(command.shell.printed[0] ?? ''), { ok: true, name: 'calendar', state: 'ready' })
  t.match(forms, [{ device_code: 'd-1' }, { grant_type: 'refresh_token' }])
})

t.test('a person connects the account of an agent or an owner, and ends it', async t => {
  const { id } = await gateway.agent({ ownerId: 'anna' })
  const accounts = async (name: string) =>
    JSON.parse((await gateway.manage('GET', `/credentials/${name}/accounts`)).text)
  forms.length = 0
  const command = begin('connect', 'mail', '--agent', id)
  const { searchParams } = await shownTo(command)
  await fetch(`${searchParams.get('redirect_uri')}?code=c-2&state=${searchParams.get('state')}`)
  t.equal(await command.code, 0)
  t.strictSame(command.shell.printed, ['mail is connected.'])
  t.match(await accounts('mail'), [{ agentId: id, ownerId: null, state: 'ready' }])
  const { code, out, err } = await run('connect', 'team', '--owner', 'anna', '--device', '--json')
  t.match({ code, err }, { code: 0, err: /enter AB-CD/ })
  t.match(JSON.parse(out), { ok: true, agentId: null, ownerId: 'anna', state: 'ready' })
  t.match(forms, [{ grant_type: 'authorization_code', code: 'c-2' }, { device_code: 'd-1' }])
  t.equal(forms.length, 2, 'the refresh token is not used up')
  for (const [name, ...whose] of [
    ['mail'],
    ['mail', '--owner', 'anna'],
    ['team'],
    ['calendar', '--agent', id],
  ] as const)
    t.match(await run('connect', name, ...whose), { code: 2, out: '', err: /--agent|--owner/ }, whose.join(' '))
  t.match(await run('disconnect', 'mail'), { code: 1, err: /answered 409/ })
  t.match(await accounts('mail'), [{ state: 'ready' }])
  t.match(await run('disconnect', 'mail', '--agent', id), { code: 0, out: /^mail is disconnected/ })
  t.match(await accounts('mail'), [{ agentId: id, state: 'needed' }])
  t.match(await accounts('team'), [{ state: 'ready' }])
  t.match(JSON.parse((await run('disconnect', 'team', '--owner', 'anna', '--json')).out), { ok: true })
  t.match(await accounts('team'), [{ ownerId: 'anna', state: 'needed' }])
})

t.test('a grant that the gateway does not take is revoked, or the person is told what to do', async t => {
  const { id } = await gateway.agent({ ownerId: 'anna' })
  const afterRemoval = async () => {
    const { code, shell } = begin('connect', 'mail', '--agent', unknown, '--device')
    return { code: await code, said: shell.complained.join('\n') }
  }
  const unknown = '00000000-0000-4000-8000-00000000dead'
  const first = await afterRemoval()
  t.match(first, { code: 1, said: /answered 409/ })
  t.match(first.said, new RegExp(`\n${new URL(server.url).host} still has your grant: remove the access of gateway`))
  canRevoke = true
  t.match(await afterRemoval(), { code: 1, said: /The grant was revoked at/ })
  t.strictSame(revoked, [`refresh-${issued}`])
  t.match(await run('connect', 'mail', '--agent', id, '--device'), { code: 0 })
  t.match(await afterRemoval(), { said: /still has your grant/ }, 'another account might end with it')
  t.equal(revoked.length, 1)
})

t.test('what cannot be connected is said before anybody consents', async t => {
  t.match(await run('connect', 'fixed'), {
    code: 1,
    err: /fixed is no credential of type RefreshToken or Connect in \S+gateway\.yaml\.$/m,
  })
  t.match(await run('connect', 'calendar', '--port', 'x'), { code: 2, err: /--port must be a port/ })
  t.match(await run('connect', 'calendar', '--param', 'x'), { code: 2, err: /NAME=VALUE/ })
  const { shell, code } = begin('connect', 'calendar', '--at', 'http://127.0.0.1:1')
  t.equal(await code, 1)
  t.match(shell.complained, [/No gateway answers/])
  const down = begin('connect', 'calendar')
  const url = await shownTo(down)
  isDown = true
  await fetch(`${url.searchParams.get('redirect_uri')}?code=c&state=${url.searchParams.get('state')}`)
  t.equal(await down.code, 1)
  t.match(down.shell.complained.at(-1), /not JSON|cannot be used/)
})

t.test('disconnecting says whether the server has revoked the token', async t => {
  t.match(await run('disconnect', 'calendar'), { code: 0, out: /revoke the access there by hand/ })
  t.match(JSON.parse((await run('disconnect', 'calendar', '--json')).out), { ok: true, revoked: false })
  t.match(await run('disconnect', 'fixed'), { code: 1, err: /answered 409/ })
  t.match(await run('list'), { out: /\ncalendar +RefreshToken +needed/ })
})
