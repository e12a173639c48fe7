import { readFileSync } from 'node:fs'
import t from 'tap'
import { sha256, signed } from '../../src/credentials/sigv4.ts'
import { sources } from '../../src/credentials/sources.ts'
import { createClock } from '../fixtures/clock.ts'
import { clientSetting, tokenServer } from '../fixtures/token-server.ts'

const setting = clientSetting({ Type: 'Aws' })
const { signal } = new AbortController()
const partsOf = (secret: string) => ({
  ...{ clock: createClock(), ownRequests: tokenServer(), servers: new Map() },
  secrets: { read: async () => secret },
})

const scope = { region: 'us-east-1', service: 'service' }
const keys = {
  keyId: 'AKIDEXAMPLE',
  secretKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: undefined,
}
const now = Date.UTC(2015, 7, 30, 12, 36, 0)
const payload = sha256('')
const sign = (method: string, path: string, fields: readonly string[] = []) =>
  signed({ method, host: 'example.amazonaws.com', path, fields }, keys, { scope, payload, now }).at(-1)

t.test('the signatures of the published suite of AWS', async t => {
  const start = 'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, '
  const expected = (signature: string, names = 'host;x-amz-date') =>
    `${start}SignedHeaders=${names}, Signature=${signature}`
  const vanilla = expected('5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31')
  t.equal(sign('GET', '/'), vanilla, 'get-vanilla')
  t.equal(sign('GET', '//'), vanilla, 'get-slash')
  const query = expected('b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500')
  t.equal(sign('GET', '/?Param2=value2&Param1=value1'), query, 'get-vanilla-query-order-key-case')
  const post = expected('5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b')
  t.equal(sign('POST', '/'), post, 'post-vanilla')
})

/** 2,000 random requests agreed; these are some of them, with the signatures of botocore. */
t.test('the signatures of botocore, for S3 and other services, with session tokens and odd paths', async t => {
  const cases = JSON.parse(readFileSync(new URL('../cases/sigv4-botocore.json', import.meta.url), 'utf8'))
  t.ok(cases.length > 0)
  for (const { method, host, path, fields, secret, token, region, service, payload, now, auth } of cases) {
    const own = { keyId: 'AKID', secretKey: secret, sessionToken: token ?? undefined }
    const asked = { scope: { region, service }, payload, now: now * 1_000 }
    t.equal(signed({ method, host, path, fields }, own, asked).at(-1), auth, `${method} ${path}`)
  }
})

t.test('keys are read as credential_process prints them, with their end', async t => {
  const keys = { AccessKeyId: 'A', SecretAccessKey: 'S' }
  const read = (secret: unknown) => sources.Aws({ ...setting, Secret: 'key' }, partsOf(JSON.stringify(secret)), signal)
  t.strictSame(await read(keys), { value: '{"keyId":"A","secretKey":"S"}', lifetimeMs: Number.POSITIVE_INFINITY })
  const temporary = { ...keys, SessionToken: 'T', Expiration: '2026-01-05T11:00:00Z' }
  t.strictSame(await read(temporary), {
    value: '{"keyId":"A","secretKey":"S","sessionToken":"T"}',
    lifetimeMs: 3_600_000,
  })
  for (const secret of ['x', null, { AccessKeyId: 'A' }, { SecretAccessKey: 'S' }]) {
    t.match(await read(secret).catch(error => error), { kind: 'failing', message: /must be JSON with AccessKeyId/ })
  }
  t.match(await read({ ...temporary, Expiration: '2026-01-05T09:00:00Z' }).catch(error => error), {
    message: /have ended/,
  })
})
