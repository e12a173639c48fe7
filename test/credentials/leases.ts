/** Secrets that Vault makes for the gateway: read once, renewed, replaced, and given back. Threat T83. */
import t from 'tap'
import { keysIn } from '../../src/credentials/aws.ts'
import { openKeptCredentials } from '../../src/gateway/credentials.ts'
import type { OwnRequests } from '../../src/upstream/own-requests.ts'
import { createClock } from '../fixtures/clock.ts'
import { testConfig } from '../fixtures/gateway.ts'

const vault = 'https://vault.example:8200/v1/'
const config = testConfig({
  Secrets: [
    { Name: 'role', FromEnv: 'ROLE' },
    { Name: 'made', FromUrl: `${vault}aws/creds/agent`, Credential: 'vault' },
    { Name: 'made-id', FromUrl: `${vault}aws/creds/agent`, Credential: 'vault', Pointer: '/data/access_key' },
    { Name: 'stored', FromUrl: `${vault}secret/data/shop`, Credential: 'vault', Pointer: '/data/data/key' },
  ],
  Credentials: [
    { Name: 'vault', Type: 'Vault', Secret: 'role', TokenUrl: `${vault}auth/approle/login`, ClientId: 'id' },
    { Name: 'aws', Type: 'Aws', Secret: 'made', Services: ['s3'], Regions: ['eu-central-1'] },
    { Name: 'id', Secret: 'made-id' },
    { Name: 'shop', Secret: 'stored' },
  ],
})

/** A server in the form of Vault, which ends the leases of a token with it. */
function open() {
  const clock = createClock()
  const server = {
    tokens: new Set<string>(),
    /** By id: the token that it was made for. */
    leases: new Map<string, string>(),
    asked: [] as string[],
    /** A token may be renewed; seconds that a lease gets then. */
    canRenew: true,
    renewed: 600,
    isRenewable: true,
    isDown: false,
  }
  let made = 0
  const answers: Readonly<Record<string, (token: string, id: string) => object | undefined>> = {
    'auth/approle/login': () => {
      const token = `token-${++made}`
      server.tokens.add(token)
      return { auth: { client_token: token, lease_duration: 1_000 } }
    },
    'auth/token/renew-self': token =>
      server.canRenew ? { auth: { client_token: token, lease_duration: 1_000 } } : undefined,
    'auth/token/revoke-self': token => {
      server.tokens.delete(token)
      for (const [id, of] of server.leases) if (of === token) server.leases.delete(id)
      return {}
    },
    'aws/creds/agent': token => {
      const id = `aws/creds/agent/${++made}`
      server.leases.set(id, token)
      const data = { access_key: `AKIA${made}`, secret_key: 'secret', security_token: null }
      return { lease_id: id, lease_duration: 600, renewable: server.isRenewable, data }
    },
    'secret/data/shop': () => ({ lease_id: '', lease_duration: 0, renewable: false, data: { data: { key: 'k' } } }),
    'sys/leases/renew': (_, id) =>
      server.leases.has(id) ? { lease_id: id, lease_duration: server.renewed, renewable: true } : undefined,
    'sys/leases/revoke': (_, id) => {
      server.leases.delete(id)
      return {}
    },
  }
  const ownRequests: Pick<OwnRequests, 'ask'> = {
    async ask({ url, headers, body }) {
      const path = url.slice(vault.length)
      server.asked.push(path)
      if (server.isDown) throw new Error('unreachable')
      const token = headers[headers.indexOf('X-Vault-Token') + 1] ?? ''
      const isKnown = path.endsWith('/login') || server.tokens.has(token)
      const answer = isKnown ? answers[path]?.(token, JSON.parse(String(body) || '{}').lease_id) : undefined
      return { status: answer ? 200 : 403, fields: [], body: Buffer.from(JSON.stringify(answer ?? { errors: [] })) }
    },
  }
  const taken = (path: string) => server.asked.filter(one => one === path).length
  const kept = openKeptCredentials(config, { clock, ownRequests, env: { ROLE: 'secret-id' }, baseDirectory: '/' })
  /** Time passes, and the gateway looks after its secrets. */
  const pass = async (seconds: number) => {
    const { sweep } = await kept
    for (let left = seconds; left > 0; left -= 10) {
      await clock.advance(Math.min(10, left) * 1_000)
      for (let times = 0; times < 3; times++) {
        await sweep()
        await new Promise(setImmediate)
      }
    }
  }
  const value = async (name: string) => (await (await kept).need(name, undefined)).value ?? ''
  const keyId = async () => keysIn({ value: await value('aws') }).keyId
  return { server, kept, taken, pass, value, keyId }
}

t.test('a secret that was made is read once for all that is in it, and its lease is renewed', async t => {
  const { server, taken, pass, value, keyId, kept } = open()
  t.equal(await keyId(), 'AKIA2')
  t.equal(await value('id'), 'AKIA2', 'of the same lease')
  t.equal(await value('shop'), 'k')
  await pass(399)
  t.equal(taken('sys/leases/renew'), 0)
  await pass(2_010)
  t.equal(taken('sys/leases/renew'), 6)
  t.equal(taken('aws/creds/agent'), 1, 'neither made again when the store is looked at, nor for its second secret')
  t.equal(await keyId(), 'AKIA2')
  t.equal(server.leases.size, 1)
  await (await kept).close()
})

t.test('a lease that gets no more time is replaced ahead of its end, and then revoked', async t => {
  for (const way of [{ renewed: 100 }, { isRenewable: false }]) {
    const { server, taken, pass, keyId, value } = open()
    Object.assign(server, way)
    await keyId()
    await value('id')
    await pass(420)
    t.equal(await keyId(), 'AKIA3')
    t.equal(await value('id'), 'AKIA3')
    t.strictSame(
      [...server.leases.keys()],
      ['aws/creds/agent/2', 'aws/creds/agent/3'],
      'requests are under way with it',
    )
    await pass(61)
    t.strictSame([...server.leases.keys()], ['aws/creds/agent/3'])
    t.equal(taken('sys/leases/revoke'), 1)
    t.equal(taken('sys/leases/renew'), 'isRenewable' in way ? 0 : 1)
  }
})

t.test('a token near its greatest age is replaced, and what was made for it before it is revoked', async t => {
  const { server, pass, keyId } = open()
  await keyId()
  server.canRenew = false
  await pass(930)
  t.equal(server.tokens.size, 2)
  const id = await keyId()
  t.not(id, 'AKIA2')
  await pass(61)
  t.equal(server.tokens.size, 1, 'the old one was revoked')
  t.equal([...server.leases.keys()].length, 1)
  t.equal(`AKIA${[...server.leases.keys()][0]?.split('/').at(-1)}`, await keyId(), 'what is sent is still valid')
})

t.test('a store that is away is asked again after pauses, and at the end a new secret is made', async t => {
  const { server, pass, keyId } = open()
  await keyId()
  server.isDown = true
  await pass(620)
  const asked = server.asked.length
  t.ok(asked < 30, `pauses: ${asked}`)
  t.equal(await keyId(), 'AKIA2', 'the last one, while there is no other')
  server.isDown = false
  server.leases.clear()
  await pass(100)
  t.not(await keyId(), 'AKIA2')
  t.equal(server.leases.size, 1)
})

t.test('when the gateway stops, its token is revoked, and with it all that was made', async t => {
  const { server, kept, keyId } = open()
  await keyId()
  await (await kept).close()
  t.equal(server.asked.at(-1), 'auth/token/revoke-self')
  t.equal(server.tokens.size + server.leases.size, 0)
  const other = open()
  await other.keyId()
  other.server.isDown = true
  await (await other.kept).close()
  t.equal(other.server.tokens.size, 1, 'a store that is away ends it by itself, and stops nobody')
})
