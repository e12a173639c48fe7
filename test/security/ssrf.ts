/** T02, T03, T04, T05: where the gateway lets nobody go, however the destination is written. */
import { type OnReadOpts, Socket } from 'node:net'
import t, { type Test } from 'tap'
import { literalAddress } from '../../src/base/address.ts'
import { parseTarget } from '../../src/base/target.ts'
import { createEgress } from '../../src/upstream/egress.ts'
import { createClock } from '../fixtures/clock.ts'
import { startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'
import { codesOf, namesOfThisMachine, refusalOf, ssrfHosts, ssrfUrls } from '../fixtures/ssrf-targets.ts'

/** Where every socket of the gateway goes: those that read into a buffer of theirs, as those of this test do not. */
const dialled: string[] = []
const { connect } = Socket.prototype
Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
  const options = (Array.isArray(args[0]) ? args[0][0] : args[0]) as {
    readonly host: string
    readonly port: number
    readonly onread?: OnReadOpts
  }
  if (options.onread !== undefined) dialled.push(`${options.host}:${options.port}`)
  return Reflect.apply(connect, this, args)
} as typeof connect

const asked: string[] = []
const lookup = async (name: string): Promise<readonly string[]> => {
  asked.push(name)
  return namesOfThisMachine[name] ?? []
}

interface Profile {
  readonly gateway: TestGateway
  readonly token: string
  readonly strict: boolean
}

async function openProfile(strict: boolean): Promise<Profile> {
  const gateway = await startGateway(t, {
    config: {
      Egress: { DenyPrivateNetworks: strict },
      System: {
        // The sockets of this thread are watched.
        Server: { Threads: 1 },
        RateLimit: { RequestsPerMinute: 1_000_000, Burst: 10_000 },
        CircuitBreaker: { Failures: 10_000 },
      },
    },
    lookup,
  })
  return { gateway, token: (await gateway.agent()).token, strict }
}

/** Status of a request with this text behind /proxy/, byte for byte, and the code of a refusal. */
async function call(t: Test, { gateway, token }: Profile, target: string) {
  const client = await openRaw(t, gateway.port)
  client.write(
    `GET /proxy/${target} HTTP/1.1\r\nHost: g\r\nConnection: close\r\nGateway-Authorization: Bearer ${token}\r\n\r\n`,
  )
  const answer = await client.closed()
  const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(answer) ?? []
  return { status: Number(status), code: /^gateway-error: (\S+)/im.exec(answer)?.[1] }
}

const origin = await startOrigin(t)
const profiles = [await openProfile(false), await openProfile(true)]

for (const profile of profiles) {
  const { strict, gateway } = profile
  const name = strict ? 'with DenyPrivateNetworks' : 'by default'

  t.test(`T02 T03 no spelling of a forbidden host gets a socket, ${name}`, async t => {
    const canary = origin.connections()
    for (const port of [gateway.port, origin.port]) {
      for (const row of ssrfHosts) {
        const expected = refusalOf(row, strict, port === gateway.port)
        if (expected === undefined) continue
        asked.length = 0
        dialled.length = 0
        const target = `http://${row.host}:${port}/`
        const { status, code = '' } = await call(t, profile, target)
        // Some names have to be looked up to be known.
        const lookups = row.cls === 'loopback-name' ? 0 : asked.length
        const outcome = { status, code: codesOf(expected).includes(code), dialled: [...dialled], lookups }
        t.strictSame(outcome, { status: expected, code: true, dialled: [], lookups: 0 }, target)
      }
    }
    t.equal(origin.connections(), canary)
  })

  t.test(`T02 the gateway is not reached over its loopback names, ${name}`, async t => {
    dialled.length = 0
    for (const host of ['localhost', 'LOCALHOST', 'foo.localhost', 'ip6-localhost', 'ip6-loopback']) {
      t.match(await call(t, profile, `http://${host}:${gateway.port}/health`), { status: 403, code: 'egress_denied' })
    }
    t.strictSame(dialled, [])
  })

  t.test(`what is not forbidden is not blocked, ${name}`, async t => {
    const egress = createEgress({
      ...{ AllowHosts: [], DenyHosts: [], AllowCidrs: [], DenyCidrs: [], SelfUrls: [] },
      DenyPrivateNetworks: strict,
    })
    egress.setListeners([gateway.port])
    let passed = 0
    for (const row of ssrfHosts) {
      if (refusalOf(row, strict, false) !== undefined) continue
      const target = parseTarget(`https://${row.host}:8443/`)
      if (typeof target === 'string') {
        t.fail(`${row.host}: ${target}`)
        continue
      }
      const literal = literalAddress(target.origin.host)
      t.equal(egress.checkHost(target.origin), undefined, row.host)
      t.equal(egress.checkAddresses(target.origin, literal === undefined ? [] : [literal]), undefined, row.host)
      passed += 1
    }
    t.equal(passed, strict ? 15 : 35)
  })
}

t.test('T05 a URL that parsers read in different ways is refused as it stands', async t => {
  dialled.length = 0
  for (const url of ssrfUrls) {
    for (const text of [url, encodeURI(url)]) {
      const { status, code } = await call(t, profiles[0]!, text)
      t.equal(status, 400, text)
      // A raw # or backslash never gets past the request line.
      t.match(code, /^invalid_(?:target|request)$/, text)
    }
  }
  t.strictSame(dialled, [])
})

t.test('loopback by another port is a destination like any other, unless private networks are denied', async t => {
  dialled.length = 0
  const { status } = await call(t, profiles[0]!, `http://127.0.0.1:${origin.port}/`)
  t.equal(status, 200)
  t.strictSame(dialled, [`127.0.0.1:${origin.port}`], 'sockets are seen')
  asked.length = 0
  t.equal((await call(t, profiles[0]!, `http://app.localhost:${origin.port}/`)).status, 200)
  t.strictSame(asked, [], 'names below localhost are this machine, whatever a DNS server says (RFC 6761)')
})

t.test('T04 a name whose answers alternate is never followed to a refused address', async t => {
  const clock = createClock(Date.now())
  const answers = [['127.0.0.1'], ['127.0.0.1', '169.254.169.254'], ['::ffff:169.254.169.254'], ['no address'], []]
  let turn = 0
  const gateway = await startGateway(t, { clock, lookup: async () => answers[turn++ % answers.length]! })
  const { token } = await gateway.agent()
  const statuses: number[] = []
  dialled.length = 0
  for (let round = 0; round < answers.length * 2; round++) {
    const answer = await call(t, { gateway, token, strict: false }, `http://flips.example:${origin.port}/`)
    statuses.push(answer.status)
    // One answer is used for half a minute; then the name is asked for again.
    clock.advance(30_001)
  }
  t.strictSame(statuses.slice(0, 5), [200, 403, 403, 403, 502])
  t.strictSame(statuses.slice(5), [200, 403, 403, 403, 502])
  t.equal(turn, 10, 'one look-up a request, and its answer is what was dialled')
  t.ok(dialled.length <= 2, 'no socket for what is refused')
})

t.test('T04 a request that was held is checked again when it is approved', async t => {
  let address = '127.0.0.1'
  const clock = createClock(Date.now())
  const gateway = await startGateway(t, { clock, lookup: async () => [address] })
  await gateway.policy({ name: 'held', default: 'Hitl' })
  const { token } = await gateway.agent({ policyName: 'held' })
  const upstream = await startOrigin(t)
  const held = await gateway.proxy(token, `http://later.example:${upstream.port}/`)
  t.equal(held.status, 202)
  const id = held.headers.get('location')!.replace('/hitl/status/', '')
  address = '169.254.169.254'
  clock.advance(31_000)
  dialled.length = 0
  const approval = await gateway.manage('POST', `/hitl/${id}/approve`)
  t.equal(approval.headers.get('gateway-error'), 'egress_denied')
  t.equal(upstream.connections(), 0)
  t.match(JSON.parse((await gateway.manage('GET', `/hitl/status/${id}`)).text), { status: 'Pending' })
})
