/** Threat T84 of SECURITY.md. */
import t from 'tap'
import { CredentialKeeper } from '../../src/credentials/keeper.ts'
import { sources } from '../../src/credentials/sources.ts'
import { isFresh } from '../../src/credentials/state.ts'
import { viewOf } from '../../src/credentials/view.ts'
import { createAttemptNotes } from '../../src/gateway/kept-credential.ts'
import type { CredentialNotes } from '../../src/storage/credentials.ts'
import { createClock } from '../fixtures/clock.ts'
import { testConfig } from '../fixtures/gateway.ts'
import { clientSetting, tokenServer } from '../fixtures/token-server.ts'

const setting = clientSetting()

function open() {
  const clock = createClock()
  const server = tokenServer()
  const attempts: (string | undefined)[] = []
  const levels: string[] = []
  const write = (level: string) => () => void levels.push(level)
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error'), line() {} }
  const notes = createAttemptNotes({ clock, log })
  const parts = { clock, ownRequests: server, servers: new Map(), secrets: { read: async () => 'secret' } }
  const keeper = new CredentialKeeper(setting, {
    clock,
    obtain: signal => sources.ClientCredentials(setting, parts, signal),
    onState: () => {},
    onAttempt(_, problem, before, isUsable) {
      attempts.push(problem?.kind)
      notes.onAttempt('shop', problem, before, isUsable)
    },
  })
  return { clock, server, keeper, attempts, levels }
}

t.test('a thousand requests that need a token make one request for it', async t => {
  const { server, keeper } = open()
  const states = await Promise.all(Array.from({ length: 1_000 }, () => keeper.renewed(undefined)))
  t.equal(server.asked.length, 1)
  t.ok(states.every(({ value }) => value === 'token-1'))
})

t.test('a token is sent until shortly before its end, and renewed ahead of it', async t => {
  const { clock, server, keeper } = open()
  const { freshUntil, renewAt } = await keeper.renewed(undefined)
  t.equal(freshUntil - clock.steady(), 3_600_000 - 30_000)
  t.ok(renewAt - clock.steady() <= 3_240_000 && renewAt - clock.steady() >= 3_204_000, '10 % before the end, and a bit')
  await keeper.renewed(undefined)
  t.equal(server.asked.length, 1)
  clock.advance(3_300_000)
  t.ok(isFresh(keeper.state, clock.steady()))
  t.equal((await keeper.renewed(undefined)).value, 'token-2')
  clock.advance(3_600_000)
  t.notOk(isFresh(keeper.state, clock.steady()))
})

t.test('the life of a token counts from the request for it', async t => {
  const { clock, server, keeper } = open()
  server.onAsk = () => clock.advance(8_000)
  const from = clock.steady()
  const { freshUntil } = await keeper.renewed(undefined)
  t.equal(freshUntil - from, 3_570_000)
})

t.test('a token of a short life is not renewed with each request', async t => {
  const { clock, server, keeper } = open()
  server.answer = { access_token: 'short', token_type: 'bearer', expires_in: 40 }
  const { freshUntil, renewAt } = await keeper.renewed(undefined)
  t.ok(renewAt > clock.steady() && renewAt < freshUntil)
})

t.test('after a failure the pauses grow to a minute, and a new secret ends them', async t => {
  const { clock, server, keeper, attempts } = open()
  server.status = 500
  const pauses: number[] = []
  for (let round = 0; round < 9; round++) {
    const from = clock.steady()
    const before = attempts.length
    while (attempts.length === before) {
      await keeper.renewed(undefined)
      if (attempts.length === before) clock.advance(100)
    }
    pauses.push(clock.steady() - from)
  }
  t.equal(pauses[0], 0)
  t.ok(pauses[1]! >= 1_000 && pauses[1]! <= 1_200, String(pauses))
  t.ok(
    pauses.slice(-2).every(pause => pause >= 60_000 && pause <= 66_100),
    String(pauses),
  )
  t.equal(keeper.state.problem?.kind, 'failing')
  server.status = 200
  await keeper.restart()
  t.equal(keeper.state.value, `token-${server.asked.length}`)
  t.equal(keeper.state.problem, undefined)
})

t.test('an old token is sent while the server fails, until its end', async t => {
  const { clock, server, keeper, levels } = open()
  await keeper.renewed(undefined)
  server.status = 503
  clock.advance(3_400_000)
  const { value, problem } = await keeper.renewed(undefined)
  t.equal(value, 'token-1')
  t.match(problem, { kind: 'failing' })
  t.ok(isFresh(keeper.state, clock.steady()))
  clock.advance(200_000)
  await keeper.renewed(undefined)
  t.strictSame(levels, ['debug', 'warn', 'error'], 'without a value it is an error')
})

t.test('agents that provoke refusals of a token cause one renewal in a minute', async t => {
  const { clock, server, keeper } = open()
  const { version } = await keeper.renewed(undefined)
  const states = await Promise.all(Array.from({ length: 100 }, () => keeper.renewed(version)))
  t.ok(states.every(({ value }) => value === 'token-2'))
  t.equal(server.asked.length, 2)
  t.equal((await keeper.renewed(version)).value, 'token-2', 'a late refusal of the old one')
  t.equal(server.asked.length, 2)
  await keeper.renewed(states[0]!.version)
  t.equal(server.asked.length, 2, 'the new one too: not within a minute')
  clock.advance(60_000)
  await keeper.renewed(states[0]!.version)
  t.equal(server.asked.length, 3)
})

t.test('a secret that changes during an attempt is used before anybody goes on', async t => {
  const { server, keeper } = open()
  let change: Promise<void> | undefined
  server.onAsk = () => {
    server.onAsk = () => {}
    change = keeper.restart()
  }
  t.equal((await keeper.renewed(undefined)).value, 'token-2')
  await change
  t.equal(server.asked.length, 2)
})

t.test('a grant that was withdrawn needs a person', async t => {
  const { server, keeper, attempts } = open()
  server.status = 400
  server.answer = { error: 'invalid_grant', error_description: 'the secret text' }
  const { problem } = await keeper.renewed(undefined)
  t.strictSame(problem, { kind: 'needed', text: 'The token server answers invalid_grant (status 400).' })
  t.strictSame(attempts, ['needed'])
})

t.test('people are told of few scopes that an upstream wants, each once, and of all that they can grant', async t => {
  const keeper = new CredentialKeeper(clientSetting({ Type: 'Connect', Scope: 'read', StepUpScope: 'write' }), {
    ...{ clock: createClock(), onState: () => {}, onAttempt: () => {} },
    obtain: async () => ({ value: 'v', lifetimeMs: 60_000, grantable: ['write'] }),
  })
  await keeper.renewed(undefined)
  t.strictSame(keeper.noteWanted(['read', 'odd-0', 'odd-0']), ['odd-0'], 'it has read')
  const odd = Array.from({ length: 20 }, (_, i) => `odd-${i}`)
  t.equal(keeper.noteWanted(odd).length, 7)
  t.strictSame(keeper.noteWanted([...odd, 'write']), ['write'])
  t.strictSame(keeper.noteWanted([...odd, 'write']), [])
  t.strictSame(keeper.wantedScopes.slice(0, 2), ['write', 'odd-0'])
  t.equal(keeper.wantedScopes.length, 9)
})

t.test('a message to people names the scopes that they can grant, and no other text of the upstream', async t => {
  const clock = createClock()
  const keeper = new CredentialKeeper(clientSetting({ Type: 'Connect', Scope: 'read', StepUpScope: 'write' }), {
    ...{ clock, onState: () => {}, onAttempt: () => {} },
    obtain: async () => ({ value: 'v', lifetimeMs: 60_000, grantable: ['write'] }),
  })
  await keeper.renewed(undefined)
  const noted: CredentialNotes[] = []
  const notes = createAttemptNotes({ clock })
  notes.useStore({
    ...{ config: testConfig(), identity: { tokens: { secret: Buffer.of() } }, report: () => {} },
    store: { credentials: { note: async (one: CredentialNotes) => void noted.push(one) } } as never,
  })
  const key = { name: 'mail', subject: 'all' }
  notes.onWanted(key, keeper, { scopes: ['write', 'https://evil.example/connect'], host: 'h' })
  t.equal(noted[0]?.event?.data['cause'], 'h wants the scope write: connect the account again with it.')
  t.match(noted[0]?.entry?.details, { scope: 'write https://evil.example/connect' })
  notes.onWanted(key, keeper, { scopes: ['https://evil.example/connect'], host: 'h' })
  t.equal(noted[1]?.event, undefined)
})

t.test('a value that lasts longer than there are dates hides no other credential', async t => {
  const clock = createClock()
  const keeper = new CredentialKeeper(setting, {
    ...{ clock, onState: () => {}, onAttempt: () => {} },
    obtain: async () => ({ value: 'v', lifetimeMs: 1e18 }),
  })
  await keeper.renewed(undefined)
  t.equal(viewOf(setting, [keeper], { upstreams: [], clock }).expiresAt, '+275760-09-13T00:00:00.000Z')
})
