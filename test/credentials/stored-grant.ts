/** Threat T87 of SECURITY.md. */
import t from 'tap'
import { broughtBy, serverOf } from '../../src/credentials/stored-row.ts'
import { credentialFleet } from '../fixtures/credential-fleet.ts'
import { eventually } from '../fixtures/gateway.ts'

const entry = { at: 1, actor: 'admin', action: 'credential.connected', subject: 'shop', requestId: null, details: {} }
const isNeeded = { problem: { kind: 'needed', text: /credential connect shop/ } }

async function connected(more: Parameters<typeof credentialFleet>[0] = {}) {
  const fleet = credentialFleet(more)
  const [one, two] = [fleet.gateway('one'), fleet.gateway('two')]
  await one.grant.connect({ refreshToken: 'first' }, entry)
  return { fleet, one, two }
}

t.test(
  'a token that a person has granted is exchanged once for all gateways, also by many requests at once',
  async t => {
    const { fleet, one, two } = await connected()
    const asked = Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? one : two).keeper.renewed(undefined))
    t.ok((await Promise.all(asked)).every(({ value }) => value === 'access-1'))
    t.equal(fleet.server.asked.length, 1)
    t.match(fleet.server.asked[0]?.form, { grant_type: 'refresh_token', refresh_token: 'first' })
    t.strictSame(
      fleet.trail.map(({ action }) => action),
      ['credential.connected', 'credential.renewed'],
    )
  },
)

t.test('many rotations in turn by gateways whose clocks stand in the same place never reuse a token', async t => {
  const { fleet, one, two } = await connected()
  for (let round = 0; round < 50; round++) {
    fleet.clock.advance(3_500_000)
    await Promise.all([one, two, one].map(({ keeper }) => keeper.renewed(undefined)))
    t.equal(one.keeper.state.value, two.keeper.state.value)
  }
  t.equal(fleet.server.asked.length, 50)
  t.equal(fleet.server.reuses, 0)
})

t.test('a gateway that starts takes the stored token, and renews one that ends soon', async t => {
  const { fleet, one } = await connected()
  await one.keeper.renewed(undefined)
  const late = fleet.gateway('late')
  await late.grant.follow(undefined)
  t.equal(late.keeper.state.value, 'access-1')
  fleet.clock.advance(3_550_000)
  const last = fleet.gateway('last')
  t.equal((await last.keeper.renewed(undefined)).value, 'access-2')
})

t.test(
  'the gateway that has the lease renews; another one waits, and takes over when it does not come back',
  async t => {
    const { fleet, one, two } = await connected()
    const { promise, resolve } = Promise.withResolvers<void>()
    fleet.server.onAsk = () => promise
    const first = one.keeper.renewed(undefined)
    const second = two.keeper.renewed(undefined)
    resolve()
    t.strictSame([(await first).value, (await second).value], ['access-1', 'access-1'])
    Object.assign(fleet.rows.get('shop')!, { leaseOwner: 'killed', leaseUntil: fleet.clock.now() + 30_000 })
    fleet.clock.advance(3_600_000)
    t.equal((await two.keeper.renewed(undefined)).value, 'access-2')
  },
)

t.test('while the document of the server comes late another gateway renews, and the token is sent once', async t => {
  const issuer = 'https://idp.example'
  const { fleet, one, two } = await connected({ Issuer: issuer, TokenUrl: undefined })
  const { server, clock } = fleet
  server.documents.set(`${issuer}/.well-known/openid-configuration`, { issuer, token_endpoint: `${issuer}/token` })
  const [late, isAsked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { ask } = server
  server.ask = async (...asked) => {
    server.ask = ask
    isAsked.resolve()
    await late.promise
    return ask(...asked)
  }
  const first = one.keeper.renewed(undefined)
  await isAsked.promise
  clock.advance(40_000)
  t.equal((await two.keeper.renewed(undefined)).value, 'access-1')
  late.resolve()
  t.equal((await first).value, 'access-1')
  t.equal(server.reuses, 0)
})

t.test('a token is not sent when what else is needed for that came so late that the lease may end', async t => {
  const { fleet, one, two } = await connected()
  const late = new Map(fleet.secrets)
  fleet.secrets.get = name => {
    Reflect.deleteProperty(fleet.secrets, 'get')
    fleet.clock.advance(31_000)
    return late.get(name)
  }
  t.match((await one.keeper.renewed(undefined)).problem, { kind: 'failing', text: /too late/ })
  t.equal(fleet.server.asked.length, 0)
  t.equal((await two.keeper.renewed(undefined)).value, 'access-1')
  t.equal((await one.keeper.renewed(undefined)).value, 'access-1')
  t.equal(fleet.server.reuses, 0)
})

t.test('a gateway that waits for another one gives up in its time', async t => {
  const { fleet, one } = await connected()
  Object.assign(fleet.rows.get('shop')!, { leaseOwner: 'killed', leaseUntil: fleet.clock.now() + 30_000 })
  const waiting = one.keeper.renewed(undefined)
  fleet.clock.advance(10_000)
  t.match((await waiting).problem, { kind: 'failing', text: /Another gateway renews/ })
  t.equal(fleet.server.asked.length, 0)
})

t.test('a token that the store does not take is sent all the same, and stored as soon as it does', async t => {
  const { fleet, one, two } = await connected()
  fleet.server.onAsk = () => {
    fleet.isAway = true
  }
  t.equal((await one.keeper.renewed(undefined)).value, 'access-1')
  t.equal(fleet.rows.get('shop')?.version, 1)
  fleet.clock.advance(3_550_000)
  t.match(
    (await one.keeper.renewed(undefined)).problem,
    { text: /not stored yet/ },
    'its refresh token must not be lost',
  )
  await one.grant.sweep()
  fleet.isAway = false
  await one.grant.sweep()
  t.equal(fleet.rows.get('shop')?.version, 2)
  t.ok(fleet.reports.length > 0)
  fleet.clock.advance(120_000)
  t.equal((await two.keeper.renewed(undefined)).value, 'access-2')
  t.equal(fleet.server.reuses, 0)
})

t.test('while the store is away an account is sent to the end of its token, and cannot be connected', async t => {
  const fleet = credentialFleet({ Type: 'Connect' })
  const { grant, keeper } = fleet.gateway('one', 'agent a1 5')
  const at = fleet.clock.now()
  const granted = { refreshToken: 'first', access: { token: 'a-1', at, until: at + 3_600_000 } }
  await grant.connect(granted, entry)
  fleet.isAway = true
  t.equal((await keeper.renewed(undefined)).value, 'a-1')
  fleet.clock.advance(3_550_000)
  t.match(await keeper.renewed(undefined), { value: 'a-1', problem: { kind: 'failing' } })
  fleet.clock.advance(50_000)
  t.ok(keeper.state.freshUntil <= fleet.clock.steady(), 'it has ended')
  t.equal(fleet.server.asked.length, 0, 'its refresh token could not be replaced')
  await t.rejects(grant.connect(granted, entry), { message: /store is away/ })
})

t.test(
  'a token for one MCP server is not sent to another one of the same issuer, nor is it renewed for that',
  async t => {
    const issuer = 'https://idp.example'
    const [before, after] = ['https://a.example/mcp', 'https://b.example/mcp']
    const fleet = credentialFleet({ Type: 'Connect', Issuer: issuer, TokenUrl: undefined, McpServer: before })
    const { documents } = fleet.server
    documents.set(`${issuer}/.well-known/openid-configuration`, { issuer, token_endpoint: `${issuer}/token` })
    const about = { resource: after, authorization_servers: [issuer] }
    documents.set('https://b.example/.well-known/oauth-protected-resource/mcp', about)
    const at = fleet.clock.now()
    const account = { by: 'ada', at, scope: null, login: null, server: serverOf(fleet.setting) }
    const granted = { refreshToken: 'first', access: { token: 'a-1', at, until: at + 3_600_000 }, account }
    const one = fleet.gateway('one', 'agent a1 5')
    await one.grant.connect(granted, entry)
    t.equal(one.keeper.state.value, 'a-1')
    Object.assign(fleet.setting, { McpServer: after })
    const { grant, keeper } = fleet.gateway('started later', 'agent a1 5')
    await grant.follow(undefined)
    t.equal(keeper.state.value, undefined)
    t.match(await keeper.renewed(undefined), { value: undefined, problem: { kind: 'needed' } })
    t.equal(fleet.server.asked.length, 0)
  },
)

t.test('a write whose answer was lost is not made twice', async t => {
  const { fleet, one } = await connected()
  fleet.losesAnswer = true
  t.equal((await one.keeper.renewed(undefined)).value, 'access-1')
  fleet.losesAnswer = false
  await one.grant.sweep()
  t.equal(fleet.rows.get('shop')?.version, 2)
  t.equal(one.keeper.state.value, 'access-1')
  fleet.clock.advance(3_600_000)
  t.equal((await one.keeper.renewed(undefined)).value, 'access-2')
})

t.test('a grant that was taken back needs a person, in all gateways, and a new one ends that', async t => {
  const { fleet, one, two } = await connected()
  fleet.server.valid = 'another'
  t.match(await one.keeper.renewed(undefined), { problem: { kind: 'needed', text: /invalid_grant/ } })
  t.match(two.keeper.state, isNeeded)
  t.match(one.problems, [/invalid_grant/])
  t.match(await two.keeper.renewed(undefined), isNeeded)
  t.equal(fleet.server.asked.length, 1, 'the token is not sent again')
  fleet.server.valid = 'another'
  await two.grant.connect({ refreshToken: 'another' }, entry)
  t.equal((await one.keeper.renewed(undefined)).value, 'access-2')
  t.equal(two.keeper.state.value, 'access-2')
})

t.test('a disconnected credential is sent by no gateway, not even by one that renews it at the time', async t => {
  const { fleet, one, two } = await connected()
  await one.keeper.renewed(undefined)
  fleet.clock.advance(3_600_000)
  let taken: unknown
  fleet.server.onAsk = async () => {
    taken = await two.grant.disconnect({ ...entry, action: 'credential.disconnected' })
  }
  t.match(await one.keeper.renewed(undefined), isNeeded)
  t.match(taken, { token: 'refresh-1', hint: 'refresh_token' })
  for (const { keeper } of [one, two]) t.match(keeper.state, { value: undefined, ...isNeeded })
})

t.test('a person who takes back a grant while the store is away for its gateway wins', async t => {
  const { fleet, one, two } = await connected()
  fleet.server.onAsk = () => {
    fleet.isAway = true
  }
  await one.keeper.renewed(undefined)
  fleet.isAway = false
  await two.grant.disconnect(entry)
  t.match(one.keeper.state, { value: undefined, ...isNeeded })
  await one.grant.sweep()
  t.match(one.keeper.state, isNeeded)
})

const revocable = { Issuer: 'https://idp.example', TokenUrl: undefined }

async function revocableGrant() {
  const { fleet, ...gateways } = await connected(revocable)
  fleet.server.documents.set(`${revocable.Issuer}/.well-known/openid-configuration`, {
    ...{ issuer: revocable.Issuer, token_endpoint: 'https://idp.example/token' },
    revocation_endpoint: 'https://idp.example/revoke',
  })
  const revoked = () => fleet.server.asked.filter(({ url }) => url.endsWith('/revoke')).map(({ form }) => form['token'])
  return { fleet, ...gateways, revoked }
}

t.test('the token of a renewal that a person has overtaken is revoked at its server', async t => {
  const { fleet, one, two, revoked } = await revocableGrant()
  fleet.server.onAsk = async ({ url }) => {
    if (url.endsWith('/token')) await two.grant.disconnect(entry)
  }
  t.match(await one.keeper.renewed(undefined), isNeeded)
  t.strictSame(await eventually(revoked, tokens => tokens.length > 0), ['refresh-1'])
  t.equal(fleet.server.asked.length, 2)
})

t.test('the token of a renewal that the store did not take before a person took the grant back is revoked', async t => {
  const { fleet, one, two, revoked } = await revocableGrant()
  fleet.server.onAsk = () => {
    fleet.isAway = true
  }
  await one.keeper.renewed(undefined)
  Object.assign(fleet, { isAway: false })
  fleet.server.onAsk = () => {}
  await two.grant.disconnect(entry)
  t.match(one.keeper.state, isNeeded)
  t.strictSame(await eventually(revoked, tokens => tokens.length > 0), ['refresh-1'])
})

t.test('the token of an overtaken renewal stays while there is a new grant, which may end with it', async t => {
  const { fleet, one, two, revoked } = await revocableGrant()
  let isConnected = false
  fleet.server.onAsk = async () => {
    if (!isConnected) {
      isConnected = true
      await two.grant.connect({ refreshToken: 'refresh-1' }, entry)
    }
  }
  t.equal((await one.keeper.renewed(undefined)).value, 'access-2')
  t.strictSame(revoked(), [])
})

t.test('a server that cannot revoke a token is told to people', async t => {
  const { fleet, one } = await revocableGrant()
  fleet.server.status = 503
  t.equal(await one.grant.revoke({ token: 'a token', hint: 'refresh_token' }), false)
  t.match(fleet.reports, ['a token could not be revoked at its server'])
})

t.test('a refresh token counts as rotating until a renewal has shown that it stays', async t => {
  const { fleet, one } = await connected()
  const rotates = () => fleet.rows.get('shop')?.rotates
  t.equal(rotates(), 1, 'a restored backup must not send it again')
  const stays = { access_token: 'a', token_type: 'bearer', expires_in: 3_600 }
  fleet.server.answer = stays
  const renew = async () => {
    fleet.clock.advance(3_600_000)
    await one.keeper.renewed(undefined)
    return rotates()
  }
  t.equal(await renew(), 0)
  fleet.server.answer = { ...stays, refresh_token: 'another' }
  t.equal(await renew(), 1)
  fleet.server.answer = stays
  t.equal(await renew(), 1, 'a server that has rotated may do so again')
  await one.grant.connect({ refreshToken: 'anew' }, entry)
  t.equal(rotates(), 1)
})

t.test('a first token of the settings that cannot be read stops no grant that is in the store', async t => {
  const fleet = credentialFleet({ RefreshToken: 'seed' })
  const { keeper } = fleet.gateway('one')
  t.match((await keeper.renewed(undefined)).problem, { kind: 'failing', text: /not there/ })
  fleet.clock.advance(5_000)
  fleet.secrets.set('seed', 'first')
  t.equal((await keeper.renewed(undefined)).value, 'access-1')
  fleet.secrets.delete('seed')
  fleet.clock.advance(3_600_000)
  t.equal((await keeper.renewed(undefined)).value, 'access-2')
  t.match(fleet.reports, [/first token of a credential could not be read/])
})

t.test('a seed counts as rotating too', async t => {
  const fleet = credentialFleet({ RefreshToken: 'seed' })
  fleet.secrets.set('seed', 'first')
  fleet.server.status = 500
  await fleet.gateway('one').keeper.renewed(undefined)
  t.match(fleet.rows.get('shop'), { version: 1, rotates: 1 })
})

t.test('the first token of the settings is used once, and another one replaces what is stored', async t => {
  const fleet = credentialFleet({ RefreshToken: 'seed' })
  fleet.secrets.set('seed', 'first')
  const one = fleet.gateway('one')
  t.equal((await one.keeper.renewed(undefined)).value, 'access-1')
  t.match(fleet.trail[0], { action: 'credential.connected', details: { from: 'settings' } })
  fleet.clock.advance(3_600_000)
  t.equal((await one.keeper.renewed(undefined)).value, 'access-2')
  t.equal(fleet.server.asked[1]?.form['refresh_token'], 'refresh-1', 'not the first one again')
  fleet.server.valid = 'second'
  fleet.secrets.set('seed', 'second')
  t.ok(one.keeper.reads('seed'))
  await one.keeper.restart()
  t.equal(one.keeper.state.value, 'access-3')
  fleet.secrets.set('seed', 'first')
  await one.keeper.restart()
  t.equal(fleet.server.reuses, 0, 'a gateway with the old settings does not bring the old one back')
  await one.grant.disconnect(entry)
  t.match(await one.keeper.renewed(undefined), isNeeded)
})

t.test('what a first token of the settings was exchanged for is sent to no other server', async t => {
  const fleet = credentialFleet({ RefreshToken: 'seed' })
  fleet.secrets.set('seed', 'first')
  t.equal((await fleet.gateway('one').keeper.renewed(undefined)).value, 'access-1')
  Object.assign(fleet.setting, { TokenUrl: 'https://other.example/token' })
  t.match(await fleet.gateway('started later').keeper.renewed(undefined), { problem: { kind: 'needed' } })
  t.strictSame(
    fleet.server.asked.map(({ url, form }) => [new URL(url).host, form['refresh_token']]).filter(([, token]) => token),
    [['idp.example', 'first']],
  )
})

/** A fleet that an issuer has granted a token to, and whose settings name another one by now. */
async function moved(more: Parameters<typeof credentialFleet>[0] = {}) {
  const [former, issuer] = ['https://former.example', 'https://idp.example']
  const fleet = credentialFleet({ Issuer: former, TokenUrl: undefined, ...more })
  const { server, setting } = fleet
  for (const at of [former, issuer]) {
    const endpoints = { token_endpoint: `${at}/token`, revocation_endpoint: `${at}/revoke` }
    server.documents.set(`${at}/.well-known/openid-configuration`, { issuer: at, ...endpoints })
  }
  const one = fleet.gateway('one')
  const granted = { refreshToken: 'first', account: broughtBy('ada', 1, setting) }
  await one.grant.connect(granted, entry)
  Object.assign(setting, { Issuer: issuer, ClientId: 'another client' })
  const asked = () =>
    server.asked.map(({ url, form, fields }) => [url, form['token'], form['client_id'], fields['authorization']])
  return { fleet, one, asked }
}

t.test(
  'a grant of a server that the settings name no more is revoked there, without secrets of the settings',
  async t => {
    const { fleet, one, asked } = await moved()
    t.match(await one.keeper.renewed(undefined), { problem: { kind: 'needed', text: /is another one by now/ } })
    await eventually(asked, ({ length }) => length > 0)
    t.strictSame(asked(), [['https://former.example/revoke', 'first', 'a client', undefined]])
    t.strictSame(fleet.reports, [])
    t.match(await fleet.gateway('two').keeper.renewed(undefined), isNeeded)
    t.equal(asked().length, 1)
  },
)

t.test('it is revoked too when a person, or the settings, grant another one of the new server', async t => {
  for (const renew of [
    ({ one }: Awaited<ReturnType<typeof moved>>) => one.grant.connect({ refreshToken: 'first' }, entry),
    ({ one, fleet }: Awaited<ReturnType<typeof moved>>) => {
      Object.assign(fleet.setting, { RefreshToken: 'seed' })
      fleet.secrets.set('seed', 'first')
      return one.keeper.renewed(undefined)
    },
  ]) {
    const changed = await moved()
    await renew(changed)
    const [revoked] = await eventually(
      () => changed.asked().filter(([url]) => String(url).endsWith('/revoke')),
      ({ length }) => length > 0,
    )
    t.strictSame(revoked, ['https://former.example/revoke', 'first', 'a client', undefined])
    t.equal((await changed.one.keeper.renewed(undefined)).problem, undefined)
  }
})

t.test('a former server that cannot be reached is told to people, and asked once', async t => {
  const { fleet, one, asked } = await moved()
  fleet.server.documents.delete('https://former.example/.well-known/openid-configuration')
  t.match(await one.keeper.renewed(undefined), { problem: { kind: 'needed' } })
  await eventually(
    () => fleet.reports,
    ({ length }) => length > 0,
  )
  t.match(fleet.reports, [/could not be revoked/])
  t.strictSame(asked(), [])
})

t.test('a credential that nobody has connected needs a person', async t => {
  const { keeper, grant } = credentialFleet().gateway('one')
  await grant.follow(undefined)
  t.equal(keeper.state.problem, undefined, 'nobody has asked for it')
  t.match(await keeper.renewed(undefined), isNeeded)
})

t.test('what is stored is sealed for its name and version, and does not open elsewhere', async t => {
  const { fleet, one, two } = await connected()
  await one.keeper.renewed(undefined)
  const row = fleet.rows.get('shop')!
  t.notMatch(Buffer.from(row.sealed).toString('latin1'), /access|refresh/)
  await fleet.change({ ...row, version: 9 })
  t.match(two.keeper.state, { value: undefined, problem: { kind: 'failing' } })
  t.match((await two.keeper.renewed(undefined)).problem, { text: /sealed with another key/ })
  await two.grant.connect({ refreshToken: fleet.server.valid }, entry)
  t.equal((await two.keeper.renewed(undefined)).value, 'access-2', 'a person can replace it')
})

t.test('a stored token that cannot be read is sent no more', async t => {
  const { fleet, one, two } = await connected()
  await one.keeper.renewed(undefined)
  fleet.isAway = true
  await two.grant.follow(7)
  t.match(two.keeper.state, { value: undefined, problem: { kind: 'failing' } })
  fleet.isAway = false
  t.equal((await two.keeper.renewed(undefined)).value, 'access-1')
})

t.test('a server that states no life gives a token that is sent until it is refused', async t => {
  const { fleet, one } = await connected()
  fleet.server.answer = { access_token: 'endless', token_type: 'bearer' }
  const { value, freshUntil, version } = await one.keeper.renewed(undefined)
  t.strictSame({ value, freshUntil }, { value: 'endless', freshUntil: Number.POSITIVE_INFINITY })
  t.equal(fleet.rows.get('shop')?.rotates, 0)
  fleet.server.answer = { access_token: 'next', token_type: 'bearer' }
  t.equal((await one.keeper.renewed(version)).value, 'next')
  t.equal(fleet.server.asked[1]?.form['refresh_token'], 'first', 'the server gave no other one')
})

t.test('a server that fails otherwise costs nothing but time', async t => {
  const { fleet, one } = await connected()
  Object.assign(fleet.server, { status: 500, answer: '<html>' })
  t.match((await one.keeper.renewed(undefined)).problem, { kind: 'failing' })
  Object.assign(fleet.server, { status: 200, answer: undefined })
  fleet.clock.advance(2_000)
  t.equal((await one.keeper.renewed(undefined)).value, 'access-2')
})
