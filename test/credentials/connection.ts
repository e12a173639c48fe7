/** A person enters a code at the server, while a tab of the console asks whether it was done (RFC 8628). Threat T91. */
import t from 'tap'
import type { CredentialSetting } from '../../src/config/credentials.ts'
import { type BegunConnection, beginConnection, takeConnection } from '../../src/credentials/connection.ts'
import type { ClientUse } from '../../src/credentials/own-clients.ts'
import type { ConsentRecord } from '../../src/storage/credentials.ts'
import { createClock } from '../fixtures/clock.ts'
import { clientSetting, tokenServer } from '../fixtures/token-server.ts'

const setting = clientSetting({
  ...{ Name: 'mail', Type: 'Connect', ClientAuth: 'None', Secret: undefined, Scope: 'read' },
  DeviceUrl: 'https://idp.example/device',
})
const codes = { device_code: 'd-1', user_code: 'AB-CD', verification_uri: 'https://idp.example/enter' }

async function begun(more: object = {}) {
  const clock = createClock()
  const server = tokenServer()
  const rows = new Map<string, ConsentRecord>()
  const parts = {
    table: {
      keepConsent: async (row: ConsentRecord) => void rows.set(row.hash, row),
      async takeConsent(hash: string, now: number) {
        const row = rows.get(hash)
        rows.delete(hash)
        return row !== undefined && row.expiresAt > now ? row : undefined
      },
    },
    sealingKeys: [new Uint8Array(32)] as const,
    clients: {
      use: async <T>(setting: CredentialSetting, _: unknown, ask: (use: ClientUse) => Promise<T>) =>
        ask({ setting, parts: { clock, ownRequests: server, servers: new Map(), secrets: { read: async () => '' } } }),
    },
    clock,
  }
  server.answer = { ...codes, expires_in: 60, interval: 5, ...more }
  const asked = {
    key: { name: 'mail', subject: 'agent a 1' },
    personId: 'ada',
    redirectUri: undefined,
    terms: { more: [] },
  }
  const begun = (await beginConnection(setting, asked, parts)) as BegunConnection & {
    readonly device: NonNullable<BegunConnection['device']>
  }
  const { session, device } = begun
  /** What the next question of the tab learns. */
  const ask = async (given: object = {}) => {
    const answer = new URLSearchParams({ state: device.state })
    const taken = await takeConnection({ name: 'mail', personId: 'ada', session, answer, ...given }, parts)
    return taken?.finish(setting, () => {}).catch(error => ({ kind: error.kind, text: error.message }))
  }
  return { clock, server, begun, ask, rows }
}

t.test('a tab learns the code, and asks the server in its pace until the person has consented', async t => {
  const { clock, server, begun: offer, ask } = await begun()
  t.match(offer, { url: 'https://idp.example/enter', device: { code: 'AB-CD', everySeconds: 5 } })
  t.equal(offer.expiresAt, clock.now() + 60_000)
  t.notMatch(JSON.stringify(offer), /d-1/)
  t.match(server.asked[0], { url: 'https://idp.example/device', form: { scope: 'read', client_id: 'a client' } })
  const questions = async () => {
    const before = server.asked.length
    return [await ask(), server.asked.length - before]
  }
  t.strictSame(await questions(), [{ everySeconds: 5 }, 0], 'too early')
  await clock.advance(5_000)
  Object.assign(server, { status: 400, answer: { error: 'authorization_pending' } })
  t.strictSame(await questions(), [{ everySeconds: 5 }, 1])
  t.strictSame(await questions(), [{ everySeconds: 5 }, 0])
  await clock.advance(5_000)
  server.answer = { error: 'slow_down' }
  t.strictSame(await questions(), [{ everySeconds: 10 }, 1])
  await clock.advance(10_000)
  server.onAsk = () => Promise.reject(new Error('unreachable'))
  t.strictSame(await questions(), [{ everySeconds: 20 }, 1], 'a server that is away')
  await clock.advance(20_000)
  Object.assign(server, { status: 200, onAsk: () => {} })
  const idToken = `e30.${Buffer.from('{"email":"ada@example.com"}').toString('base64url')}.`
  server.answer = { access_token: 'a', refresh_token: 'r', token_type: 'bearer', scope: 'read', id_token: idToken }
  t.match(await ask(), { refreshToken: 'r', scope: 'read', login: 'ada@example.com' })
  t.equal(await ask(), undefined, 'once')
})

t.test('a pause that no timer of a browser can wait for is not passed on', async t => {
  for (const [interval, everySeconds] of [
    [1e300, 3_600],
    [2.5, 3],
    [0.1, 1],
  ])
    t.match((await begun({ interval })).begun.device, { everySeconds }, `${interval}`)
})

t.test('a refusal, and the end of the code, end the consent; neither is asked again', async t => {
  for (const [error, text] of [
    ['access_denied', /denied at the server/],
    ['expired_token', /not entered in time/],
    ['invalid_client', /answers invalid_client/],
  ] as const) {
    const { clock, server, ask } = await begun()
    await clock.advance(5_000)
    Object.assign(server, { status: 400, answer: { error } })
    t.match(await ask(), { text }, error)
    t.equal(await ask(), undefined)
  }
  const { clock, ask } = await begun()
  await clock.advance(60_000)
  t.equal(await ask(), undefined)
})

t.test('another person, tab or credential learns nothing, and ends the consent', async t => {
  for (const other of [{ personId: 'eve' }, { session: 'x'.repeat(43) }, { name: 'team' }]) {
    const { clock, server, ask, rows } = await begun()
    await clock.advance(5_000)
    t.equal(await ask(other), undefined)
    t.equal(rows.size, 0)
    t.equal(server.asked.length, 1)
  }
})

t.test('a server that names no address for people is of no use', async t => {
  for (const verificationUri of ['http://idp.example/enter', 'javascript:alert(1)', 'enter'])
    await t.rejects(begun({ verification_uri: verificationUri }), { message: /no https address/ })
})
