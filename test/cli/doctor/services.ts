import { readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createSecureContext } from 'node:tls'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { collectorFindings } from '../../../src/cli/doctor/collector.ts'
import { providerFindings } from '../../../src/cli/doctor/provider.ts'
import { receiverFindings } from '../../../src/cli/doctor/receivers.ts'
import { failOf } from '../../../src/cli/doctor/result.ts'
import { createLeafs } from '../../../src/intercept/leafs.ts'
import { openStoredAuthority } from '../../../src/intercept/stored-authority.ts'
import { createClock } from '../../fixtures/clock.ts'
import { doctorParts } from '../../fixtures/doctor.ts'
import { startIdentityProvider } from '../../fixtures/idp.ts'
import { testdir } from '../../fixtures/testdir.ts'
import { serveTls } from '../../fixtures/tls-client.ts'

/** A server that answers everything with this. */
async function answering(t: Test, status: number, body = ''): Promise<string> {
  const server = createHttpServer((_, res) => res.writeHead(status, { 'Content-Type': 'application/json' }).end(body))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const fixture = (name: string) => fileURLToPath(new URL(`../../fixtures/tls/${name}`, import.meta.url))

t.test('a collector that refuses, or is down, fails, with what to check', async t => {
  for (const [status, text] of [
    [401, /does not take spans: status 401$/],
    [503, /does not take spans: .*retryable/],
  ] as const) {
    const Url = `${await answering(t, status)}/v1/traces`
    const refusing = await doctorParts(t, { Telemetry: { Tracing: { Url } } })
    t.match(await collectorFindings(refusing), [{ level: 'fail', text, remedy: /Telemetry:Tracing:Url/ }])
  }
  const down = await doctorParts(t, { Telemetry: { Tracing: { Url: 'http://127.0.0.1:1/v1/traces' } } })
  t.match(await collectorFindings(down), [{ level: 'fail', text: /^127\.0\.0\.1:1 does not take spans: .*REFUSED/ }])
})

t.test('a name whose addresses all refuse has a reason, too', async t => {
  const refused = new Error('connect ECONNREFUSED 127.0.0.1:1')
  const problem = Object.assign(new AggregateError([refused, refused]), { code: 'ECONNREFUSED' })
  t.match(failOf('it is away', problem, '', 0), { text: 'it is away: ECONNREFUSED' })
})

t.test('a collector with TLS is asked as spans are sent: with Proxy:CaFile, or the files of its variables', async t => {
  const tls = { cert: readFileSync(fixture('loopback-cert.pem')), key: readFileSync(fixture('loopback-key.pem')) }
  const server = createHttpsServer(tls, (_, res) => void res.end('{}'))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const Telemetry = { Tracing: { Url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces` } }
  // Agents are kept out of there; spans are not.
  const Egress = { DenyHosts: ['127.0.0.1'] }
  const trusting = await doctorParts(t, { Telemetry, Egress, Proxy: { CaFile: fixture('loopback-cert.pem') } })
  t.match(await collectorFindings(trusting), [{ level: 'ok', text: /takes spans/ }])
  const untold = await doctorParts(t, { Telemetry })
  const isUnknown = { level: 'fail', text: /self-signed/, remedy: /Proxy:CaFile/ }
  t.match(await collectorFindings(untold), [isUnknown])
  const own = { ...trusting, env: { OTEL_EXPORTER_OTLP_CERTIFICATE: '/elsewhere.pem' } }
  t.match(await collectorFindings(own), [isUnknown], 'the variable has the last word')
})

const identity = (Authority: string, Introspection: object) => ({
  Security: {
    AgentAuth: {
      ExternalIdentity: {
        ...{ Provider: 'Jwt', Jwt: { Authority, Audience: 'gateway', RequireHttpsMetadata: false }, Introspection },
      },
    },
  },
})

t.test('a provider without keys fails; without a client for introspection it is not asked about tokens', async t => {
  const parts = await doctorParts(t, identity('http://127.0.0.1:1', {}))
  t.match(await providerFindings(parts), [
    { level: 'fail', text: /^http:\/\/127\.0\.0\.1:1\/ gives no keys: /, remedy: /openid-configuration/ },
  ])
})

t.test('what a provider says of a token that nobody has decides whether introspection works', async t => {
  const { authority } = await startIdentityProvider(t)
  const client = { ClientId: 'gateway', ClientSecret: 'k' }
  const told = async (Introspection: object) =>
    (await providerFindings(await doctorParts(t, identity(authority, { ...client, ...Introspection }))))[1]
  t.match(await told({ Endpoint: await answering(t, 200, '{"active":false}') }), { level: 'ok' })
  t.match(await told({}), { level: 'fail', text: /calls a token active that nobody has/ })
})

t.test('a receiver with TLS is met by its name, with the authority of Proxy:CaFile', async t => {
  const [cert, key] = [readFileSync(fixture('cert.pem')), readFileSync(fixture('key.pem'))]
  const port = await serveTls(t, createSecureContext({ cert, key }))
  const Webhooks = [{ Url: `https://idp.test:${port}/a-key` }, { Url: `https://127.0.0.1:${port}/` }]
  const parts = await doctorParts(t, { HumanInTheLoop: { Webhooks }, Proxy: { CaFile: fixture('cert.pem') } })
  t.match(await receiverFindings(parts), [
    { level: 'ok', text: 'webhook 0: idp.test can be reached' },
    { level: 'fail', text: /^webhook 1 cannot be reached: .*altname/i },
  ])
  const plain = await doctorParts(t, { HumanInTheLoop: { Webhooks: [{ Url: `https://idp.test:${port}/` }] } })
  t.match(await receiverFindings(plain), [{ level: 'fail', text: /cannot be reached: .*(self.signed|certificate)/i }])
})

t.test('a certificate that is out of date is named as the reason, with the clock of this machine', async t => {
  const folder = testdir(t)
  const authority = await openStoredAuthority(folder, Date.now())
  writeFileSync(`${folder}/ca.pem`, authority.bundle)
  for (const [days, text] of [
    [-60, /: its certificate has expired$/],
    [60, /: its certificate is not valid yet$/],
  ] as const) {
    const clock = createClock(Date.now() + days * 86_400_000)
    const leafs = await createLeafs({ authority, clock, ticketKeys: Buffer.alloc(48, 7) })
    const origin = `https://127.0.0.1:${await serveTls(t, await leafs.contextFor('127.0.0.1', 'bot'))}`
    const parts = await doctorParts(t, {
      Proxy: { CaFile: `${folder}/ca.pem` },
      HumanInTheLoop: { Webhooks: [{ Url: origin }] },
      ...identity(origin, {}),
    })
    const variables = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: origin }
    process.env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] = origin
    t.teardown(() => delete process.env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'])
    const asked = [receiverFindings(parts), providerFindings(parts), collectorFindings({ ...parts, env: variables })]
    const remedy = `Have it renewed there. If it should be valid now, set the clock of this machine, which says ${new Date(parts.clock.now()).toISOString()}.`
    for (const found of await Promise.all(asked)) t.match(found, [{ level: 'fail', text, remedy }])
  }
})
