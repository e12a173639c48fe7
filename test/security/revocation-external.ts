/**
 * Threat T15 of SECURITY.md, for tokens of an identity provider: requests that wait for the verification of their token,
 * times every way for the agent to lose its right, and requests that wait elsewhere while the provider withdraws the key.
 */
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { eventually, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const [first, second] = [1, 2].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }))
/** Keys are fetched again after five minutes. */
const staleMs = 6 * 60_000

/** An identity provider with one key at a time, which answers when it is let. */
async function startProvider(t: Test) {
  let url = ''
  let key = first!
  let held: Promise<void> | undefined
  let release = () => {}
  let asked = 0
  const server = createServer(async (req, res) => {
    if (req.url !== '/keys') return void res.end(JSON.stringify({ issuer: url, jwks_uri: `${url}/keys` }))
    asked += 1
    await held
    res.end(JSON.stringify({ keys: [{ ...(await exportJWK(key.publicKey)), kid: 'only', alg: 'ES256', use: 'sig' }] }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    asked: () => asked,
    withdraw: () => {
      key = second!
    },
    restore: () => {
      key = first!
    },
    hold: () => {
      held = new Promise(resolve => {
        release = resolve
      })
    },
    release: () => release(),
    token: (subject: string, now: number) =>
      new SignJWT({})
        .setProtectedHeader({ alg: 'ES256', kid: 'only', typ: 'at+jwt' })
        .setIssuer(url)
        .setAudience('gateway')
        .setSubject(subject)
        .setIssuedAt(Math.floor(now / 1_000))
        .setExpirationTime(Math.floor(now / 1_000) + 86_400)
        .sign(first!.privateKey),
  }
}

async function startBench(t: Test, threads: number) {
  const clock = createClock()
  const provider = await startProvider(t)
  const origin = await startOrigin(t)
  let answerName = () => {}
  let asked = 0
  let named: Promise<void> | undefined
  const gateway = await startGateway(t, {
    clock,
    async lookup() {
      asked += 1
      await named
      return ['127.0.0.1']
    },
    config: {
      System: { Server: { Threads: threads, IdleTimeoutSeconds: 3_600, MinBodyBytesPerSecond: 0 } },
      Security: {
        AgentAuth: {
          ExternalIdentity: {
            Provider: 'Jwt',
            Jwt: { Authority: provider.url, Audience: 'gateway', RequireHttpsMetadata: false },
          },
        },
      },
    },
  })
  const holdNames = () => {
    named = new Promise(resolve => {
      answerName = resolve
    })
  }
  return {
    ...{ clock, provider, origin, gateway, threads, holdNames },
    answerName: () => answerName(),
    asked: () => asked,
  }
}

type Bench = Awaited<ReturnType<typeof startBench>>

const action =
  (name: string) =>
  ({ gateway }: Bench, id: string) =>
    gateway.manage('POST', `/agents/${id}/${name}`)

const ways: Readonly<Record<string, readonly [take: (bench: Bench, id: string) => Promise<unknown>, outcome: string]>> =
  {
    revoked: [action('revoke'), '403 agent_revoked'],
    quarantined: [action('quarantine'), '403 agent_quarantined'],
    deactivated: [action('deactivate'), '403 agent_inactive'],
    deleted: [({ gateway }, id) => gateway.manage('DELETE', `/agents/${id}`), '401 unauthenticated'],
    'policy unassigned': [
      ({ gateway }, id) => gateway.manage('PUT', `/agents/${id}/policy`, { policyName: null }),
      '403 policy_denied',
    ],
    'key withdrawn': [async ({ provider }) => provider.withdraw(), '401 unauthenticated'],
  }

let subjects = 0

/** An agent of the provider, and its token. */
async function newAgent({ gateway, provider, clock }: Bench) {
  const externalSubject = `robot-${++subjects}`
  const { id } = await gateway.agent({ externalSubject })
  return { id, token: await provider.token(externalSubject, clock.now()) }
}

const inFlight = ({ gateway }: { gateway: TestGateway }, count: number) =>
  eventually(gateway.gateway.inFlight, now => now === count)

/** Requests of one agent, over connections of their own. */
async function open(t: Test, bench: Bench, head: string, token: string) {
  const count = bench.threads === 1 ? 1 : 4
  const clients = await Promise.all(Array.from({ length: count }, () => openRaw(t, bench.gateway.port)))
  for (const client of clients)
    client.write(head.replace('%token', `Host: x\r\nGateway-Authorization: Bearer ${token}`))
  await inFlight(bench, count)
  return clients
}

async function expect(t: Test, bench: Bench, clients: Awaited<ReturnType<typeof open>>, outcome: string) {
  for (const client of clients) {
    const text = await client.until(/\r\n\r\n/)
    t.equal(`${text.slice(9, 12)} ${/^gateway-error: (.*)$/im.exec(text)?.[1]?.trim()}`, outcome)
  }
  await inFlight(bench, 0)
  t.equal(bench.origin.seen.length, 0, 'nothing left')
}

for (const threads of [1, 2]) {
  t.test(`${threads} of threads`, async t => {
    const bench = await startBench(t, threads)
    const { provider, clock, origin, gateway } = bench
    t.beforeEach(async () => {
      await inFlight(bench, 0)
      provider.restore()
      clock.advance(staleMs)
      const { token } = await newAgent(bench)
      t.equal((await gateway.proxy(token, origin.url)).status, 200, 'its token is good')
      origin.seen.length = 0
    })

    for (const [how, [take, outcome]] of Object.entries(ways)) {
      t.test(`${how} while it waits for: token verification`, async t => {
        const agent = await newAgent(bench)
        clock.advance(staleMs)
        provider.hold()
        const before = provider.asked()
        const clients = await open(t, bench, `GET /proxy/${origin.url}/ HTTP/1.1\r\n%token\r\n\r\n`, agent.token)
        await eventually(provider.asked, asked => asked > before)
        await take(bench, agent.id)
        provider.release()
        await expect(t, bench, clients, outcome)
      })
    }

    t.test('key withdrawn while it waits for: request body', async t => {
      const { id, token } = await newAgent(bench)
      const policyName = await gateway.policy({
        name: `reads-${threads}`,
        default: 'Allow',
        rules: [{ name: 'r', effect: 'Deny', conditions: [{ field: 'input.bodyText', operator: 'eq', value: 'x' }] }],
      })
      await gateway.manage('PUT', `/agents/${id}/policy`, { policyName })
      const head = `POST /proxy/${origin.url}/ HTTP/1.1\r\n%token\r\nContent-Length: 6\r\n\r\none`
      const clients = await open(t, bench, head, token)
      provider.withdraw()
      clock.advance(staleMs)
      for (const client of clients) client.write('two')
      await expect(t, bench, clients, '401 unauthenticated')
    })

    t.test('key withdrawn while the call waits for: verdict', async t => {
      const { id, token } = await newAgent(bench)
      const policyName = await gateway.policy({
        name: `waits-${threads}`,
        default: 'Deny',
        rules: [{ name: 'r', effect: 'Hitl', waitSeconds: 3_000, conditions: [] }],
      })
      await gateway.manage('PUT', `/agents/${id}/policy`, { policyName })
      const head = `POST /proxy/${origin.url}/ HTTP/1.1\r\n%token\r\nContent-Length: 0\r\n\r\n`
      const clients = await open(t, bench, head, token)
      const pending = async () => JSON.parse((await gateway.manage('GET', '/hitl')).text)
      const [held] = await eventually(pending, items => items.length > 0)
      provider.withdraw()
      clock.advance(staleMs)
      const reviewer = await gateway.agent({ roles: ['reviewer'] })
      t.equal((await gateway.manage('POST', `/hitl/${held.id}/approve`, {}, reviewer.token)).status, 200)
      t.equal(origin.seen.length, 1, 'the agent may act: what was approved is sent')
      origin.seen.length = 0
      await expect(t, bench, clients, '401 unauthenticated')
    })

    t.test('key withdrawn while it waits for: name look-up', async t => {
      const { token } = await newAgent(bench)
      bench.holdNames()
      const before = bench.asked()
      const url = `http://n${++subjects}.test:${origin.port}/`
      const clients = await open(t, bench, `GET /proxy/${url} HTTP/1.1\r\n%token\r\n\r\n`, token)
      await eventually(bench.asked, asked => asked > before)
      provider.withdraw()
      clock.advance(staleMs)
      bench.answerName()
      await expect(t, bench, clients, '401 unauthenticated')
    })
  })
}
