/** Requests to AWS: agents sign with placeholder keys, and the gateway signs in their place. Threat T83. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { signed } from '../../src/credentials/sigv4.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { secureCaFile, secureName, startSecureOrigin } from '../fixtures/origin.ts'

const keys = { keyId: 'AKIAREAL', secretKey: 'the-real-secret-key', sessionToken: 'the-session-token' }
const upstream = await startSecureOrigin(t, (req, res) => {
  if (req.url === '/late') res.writeHead(403, { Date: new Date(Date.now() + 600_000).toUTCString() })
  if (req.url === '/forbidden') res.statusCode = 403
  res.end('hello from upstream')
})
const host = `${secureName}:${upstream.port}`
const text = { AccessKeyId: keys.keyId, SecretAccessKey: keys.secretKey, SessionToken: keys.sessionToken }
const gateway = await startGateway(t, {
  lookup: async () => ['127.0.0.1'],
  env: { AWS_KEYS: JSON.stringify(text) },
  config: {
    Proxy: { CaFile: secureCaFile, MaxEvaluatedBodyBytes: 1_024 },
    Secrets: [{ Name: 'aws', FromEnv: 'AWS_KEYS' }],
    Credentials: [
      { Name: 'aws', Type: 'Aws', Secret: 'aws', Services: ['bedrock', 's3'], Regions: ['eu-central-1', 'us-east-1'] },
    ],
    Upstreams: [{ Host: host, Credential: 'aws' }],
  },
})
await gateway.policy({ name: 'held', default: 'Hitl' })
const bot = await gateway.agent()
const careful = await gateway.agent({ policyName: 'held' })
const scopeOf = (region: string, service: string) => `20260105/${region}/${service}/aws4_request`
const placeholder = (region: string, service: string) =>
  `AWS4-HMAC-SHA256 Credential=AKIAPLACEHOLDER/${scopeOf(region, service)}, SignedHeaders=host, Signature=00`
const call = (path: string, init?: RequestInit) => gateway.proxy(bot.token, `${upstream.url}${path}`, init)
const sha = (body: string) => createHash('sha256').update(body).digest('hex')

/** Whether the last request has the signature of the real keys, computed anew from what arrived. */
function isSigned(region: string, service: string): boolean {
  const { method, target, rawHeaders, headers } = upstream.seen.at(-1)!
  const ours = new Set(['authorization', 'x-amz-date', 'x-amz-security-token'])
  const fields = rawHeaders.filter((_, at) => !ours.has(rawHeaders[at - (at % 2)]!.toLowerCase()))
  const time = String(headers['x-amz-date']).replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z')
  const body = upstream.seen.at(-1)!.sha256
  const payload = String(headers['x-amz-content-sha256'] ?? (body === '' ? sha('') : body))
  const asked = { scope: { region, service }, payload, now: Date.parse(time) }
  const right = signed({ method, host, path: target, fields }, keys, asked).at(-1)
  return headers.authorization === right && headers['x-amz-security-token'] === keys.sessionToken
}

t.test('the signature of the agent is replaced, for the region and service that it has signed for', async t => {
  const authorization = placeholder('us-east-1', 's3')
  const headers = { authorization, 'x-amz-date': '20260105T000000Z', 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' }
  const answer = await call('/bucket/a%20b?list-type=2', { headers })
  t.equal(answer.status, 200)
  t.ok(isSigned('us-east-1', 's3'))
  t.notMatch(upstream.seen.at(-1)?.headers.authorization, /PLACEHOLDER/)
})

t.test(
  'without a signature the first service and region of the settings count, and the body is held to be signed',
  async t => {
    t.equal((await call('/model/x/invoke', { method: 'POST', body: '{"a":1}' })).status, 200)
    t.ok(isSigned('eu-central-1', 'bedrock'))
    t.equal(upstream.seen.at(-1)?.body.toString(), '{"a":1}')
    t.equal((await call('/models')).status, 200)
    t.ok(isSigned('eu-central-1', 'bedrock'))
    const long = await call('/model/x/invoke', { method: 'POST', body: 'x'.repeat(2_000) })
    t.equal(long.headers.get('gateway-error'), 'body_too_large')
    const body = 'x'.repeat(2_000)
    const named = await call('/model/x/invoke', {
      method: 'POST',
      body,
      headers: { 'x-amz-content-sha256': sha(body) },
    })
    t.equal(named.status, 200, 'with its digest it streams')
    t.ok(isSigned('eu-central-1', 'bedrock'))
  },
)

t.test('a signature in the URL is replaced by one in the header', async t => {
  const credential = encodeURIComponent(`AKIAPLACEHOLDER/${scopeOf('us-east-1', 's3')}`)
  const query = `X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${credential}&X-Amz-Date=20260105T000000Z`
  t.equal((await call(`/bucket/key?versionId=7&${query}&X-Amz-Signature=00`)).status, 200)
  t.equal(upstream.seen.at(-1)?.target, '/bucket/key?versionId=7')
  t.ok(isSigned('us-east-1', 's3'))
})

t.test('other services and regions, bodies signed in chunks and SigV4A are refused', async t => {
  const before = upstream.seen.length
  const code = async (headers: Record<string, string>) =>
    (await call('/bucket/key', { method: 'PUT', body: 'x', headers })).headers.get('gateway-error')
  t.equal(await code({ authorization: placeholder('us-east-1', 'iam') }), 'credential_conflict')
  t.equal(await code({ authorization: placeholder('us-west-2', 's3') }), 'credential_conflict')
  const chunks = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD'
  const authorization = placeholder('us-east-1', 's3')
  const digest = { 'x-amz-content-sha256': chunks }
  t.equal(await code({ authorization, ...digest }), 'signature_unsupported', 'without the length of the content')
  t.equal(await code({ authorization, ...digest, 'x-amz-decoded-content-length': '1e3' }), 'signature_unsupported')
  const other = placeholder('us-east-1', 'bedrock')
  t.equal(await code({ authorization: other, ...digest, 'x-amz-decoded-content-length': '1' }), 'signature_unsupported')
  t.equal(await code({ authorization: 'AWS4-ECDSA-P256-SHA256 Credential=x' }), 'signature_unsupported')
  t.equal(upstream.seen.length, before)
})

const chunk = (content: string) => `${content.length.toString(16)};chunk-signature=${'0'.repeat(64)}\r\n${content}\r\n`
/** Sends a body in signed chunks. */
const upload = (body: string, length: number, { token } = bot) =>
  gateway.proxy(token, `${upstream.url}/bucket/key`, {
    ...{ method: 'PUT', body },
    headers: {
      ...{ authorization: placeholder('us-east-1', 's3'), 'content-encoding': 'aws-chunked,gzip' },
      'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER',
      ...{ 'x-amz-decoded-content-length': String(length), 'x-amz-trailer': 'x-amz-checksum-crc32' },
    },
  })
const last = `${chunk('').slice(0, -2)}x-amz-checksum-crc32:AAAAAA==\r\nx-amz-trailer-signature:${'0'.repeat(64)}\r\n\r\n`

t.test('a body in signed chunks arrives without them, signed as a whole', async t => {
  const text = 'x'.repeat(100_000)
  t.equal((await upload(`${chunk(text)}${chunk('the end')}${last}`, 100_007)).status, 200)
  const { body, headers } = upstream.seen.at(-1)!
  t.equal(body.toString(), `${text}the end`)
  t.match(headers, {
    'content-length': '100007',
    'content-encoding': 'gzip',
    'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
  })
  for (const name of ['x-amz-trailer', 'x-amz-decoded-content-length']) t.equal(headers[name], undefined)
  t.ok(isSigned('us-east-1', 's3'))
  t.equal((await upload(chunk(''), 0)).status, 200, 'an empty object')
  t.equal(upstream.seen.at(-1)?.body.length, 0)
})

t.test('a body that is not in chunks as it says is the fault of its sender', async t => {
  const before = gateway.log.filter(({ message }) => message === 'circuit opened').length
  for (let i = 0; i < 8; i += 1) {
    const answer = await upload(`${chunk('abc')}no chunk\r\n${last}`, 1_000)
    t.match([answer.status, answer.headers.get('gateway-error')], [400, 'invalid_request'])
  }
  t.equal(gateway.log.filter(({ message }) => message === 'circuit opened').length, before)
  t.equal((await call('/models')).status, 200, 'the circuit of the upstream is closed still')
})

t.test('a body in signed chunks that a reviewer would read is refused', async t => {
  const answer = await upload(`${chunk('abc')}${last}`, 3, careful)
  t.equal(answer.headers.get('gateway-error'), 'signature_unsupported')
  t.match(await answer.text(), /Switch off chunked encoding/)
})

t.test('a held request is signed when it is sent', async t => {
  const held = await gateway.proxy(careful.token, `${upstream.url}/model/x/invoke`, { method: 'POST', body: 'x' })
  t.equal(held.status, 202)
  const id = held.headers.get('location')!.replace('/hitl/status/', '')
  t.equal((await gateway.manage('POST', `/hitl/${id}/approve`)).status, 200)
  t.ok(isSigned('eu-central-1', 'bedrock'))
})

t.test('when AWS refuses signatures because clocks differ, the log says by how much', async t => {
  const said = () =>
    gateway.log.flatMap(({ message, error }) =>
      message === 'signatures for AWS are refused' ? [(error as Error).message] : [],
    )
  t.equal((await call('/forbidden')).status, 403)
  t.equal(said().length, 0)
  t.equal((await call('/late')).status, 403)
  t.match(said(), [/^the clock of idp\.test is (5\d\d|600) s ahead/])
  for (let again = 0; again < 3; again++) await call('/late')
  t.equal(said().length, 1, 'once, and not for each request')
})

t.test('no key is in the log', async t => {
  const log = JSON.stringify(gateway.log)
  for (const value of [keys.secretKey, keys.sessionToken]) t.notOk(log.includes(value))
})
