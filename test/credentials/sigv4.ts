import { createHash, createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { type AwsMessage, scopeOf, withSignature } from '../../src/credentials/aws.ts'
import { sha256, signed } from '../../src/credentials/sigv4.ts'
import { sources } from '../../src/credentials/sources.ts'
import { createClock } from '../fixtures/clock.ts'
import { createRandom, pick } from '../fixtures/random-policy.ts'
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

/** The rules as their page has them, one after the other: what `signed` does in fewer steps. */
function naive(
  { method, path, fields }: AwsMessage,
  { host, service, time }: Record<'host' | 'service' | 'time', string>,
) {
  const sha = (text: string) => createHash('sha256').update(text).digest('hex')
  const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
  const encode = (bytes: Buffer, kept = /[A-Za-z0-9._~-]/) =>
    [...bytes]
      .map(byte => [String.fromCharCode(byte), `%${byte.toString(16).toUpperCase().padStart(2, '0')}`])
      .map(([sign = '', code = '']) => (kept.test(sign) ? sign : code))
      .join('')
  const bytesOf = (text: string) => {
    try {
      return Buffer.from(decodeURIComponent(text))
    } catch {
      return Buffer.from(text)
    }
  }
  const [, start = '', query = ''] = /^([^?]*)\??(.*)$/.exec(path)!
  const parts = start.split('/').filter(Boolean)
  const rest = parts.length > 0 && start.endsWith('/') ? '/' : ''
  const resource = service === 's3' ? start : `/${parts.map(part => encode(Buffer.from(part))).join('/')}${rest}`
  const pairs = query
    .split('&')
    .filter(Boolean)
    .map(
      pair =>
        /^([^=]*)=?(.*)$/
          .exec(pair)!
          .slice(1, 3)
          .map(text => encode(bytesOf(text))) as [string, string],
    )
    .sort(([one, first], [other, second]) =>
      one === other ? +(first > second) - +(first < second) : one < other ? -1 : 1,
    )
  const named: Record<string, string[]> = { host: [host] }
  for (let i = 0; i < fields.length; i += 2) {
    const lower = fields[i]!.toLowerCase()
    if (/^x-amz-|^content-(?:type|md5)$/.test(lower))
      named[lower] = [...(named[lower] ?? []), fields[i + 1]!.trim().replace(/ +/g, ' ')]
  }
  const names = Object.keys(named).sort()
  const digest = named['x-amz-content-sha256']?.[0] ?? sha('')
  const lines = names.map(name => `${name}:${named[name]!.join(',')}`)
  const head = [method, resource, pairs.map(pair => pair.join('=')).join('&'), ...lines, '', names.join(';'), digest]
  const place = [time.slice(0, 8), 'us-east-1', service, 'aws4_request']
  const text = ['AWS4-HMAC-SHA256', time, place.join('/'), sha(head.join('\n'))].join('\n')
  const signature = mac(place.reduce<string | Buffer>(mac, `AWS4${keys.secretKey}`) as Buffer, text).toString('hex')
  return `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/${place.join('/')}, SignedHeaders=${names.join(';')}, Signature=${signature}`
}

const own = /^X-Amz-(?:Algorithm|Credential|Date|Expires|SignedHeaders|Signature|Security-Token|Content-Sha256)(?:=|$)/i
const pathParts = '/ // a %2F %41 + ~ * ( % %zz ä . - ! = ; @ %20'.split(' ')
const names = ' a A a-b a1 a%2B %C3%A4 ä x-amz-date X-Amz-Signature X-Amz-Other X%2DAmz-Date'.split(' ')
const ends = ' = =1 =+ =%2B =%2b =ä =%FF =a=b =%41 =! =z%20y'.split(' ')
const fieldNames = 'X-Amz-A x-amz-a X-Amz-A-B Content-Type content-md5 Accept X-Amz-Date AUTHORIZATION'.split(' ')
const fieldTexts = ['', 'x', ' x  y ', 'x   y  z', '\tx', 'x,y']

t.test('2,000 random requests have the signatures of a signer that takes no short way', async t => {
  const random = createRandom(20_261_128)
  const one = (of: readonly string[]) => pick(random, of)
  const some = (most: number, of: () => string) => Array.from({ length: random() * most }, of)
  const wrong: unknown[] = []
  for (let round = 0; round < 2_000; round++) {
    const service = one(['s3', 'dynamodb', 'es'])
    const start = `/${some(6, () => one(pathParts)).join('')}`
    const pairs = some(6, () => one(names) + one(ends))
    const given = some(8, () => one(fieldNames)).flatMap(name => [name, one(fieldTexts)])
    const payload = one(['', sha256('x'), 'UNSIGNED-PAYLOAD'])
    if (payload !== '') given.push('X-Amz-Content-Sha256', payload)
    const message = { method: one(['GET', 'HEAD']), path: `${start}?${pairs.join('&')}`, fields: given, body: null }
    const asked = { scope: { region: 'us-east-1', service }, host: 'h.example:8443', now: now + 500 * round }
    const kept = pairs.filter(pair => pair !== '' && !own.test(pair)).join('&')
    const path = kept === '' ? start : `${start}?${kept}`
    const time = `${new Date(asked.now).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
    const fields = given.filter((_, at) => !/^(?:x-amz-date|authorization)$/i.test(given[at - (at % 2)]!))
    fields.push('X-Amz-Date', time)
    if (payload === '' && service === 's3') fields.push('X-Amz-Content-Sha256', 'UNSIGNED-PAYLOAD')
    fields.push('Authorization', naive({ ...message, path, fields }, { host: asked.host, service, time }))
    const found = withSignature(message, keys, asked)
    if (found.path !== path || String(found.fields) !== String(fields)) wrong.push({ message, found, path, fields })
  }
  t.strictSame(wrong.slice(0, 3), [])
})

t.test('the scope of a presigned URL is found however its name is written', async t => {
  const settings = { ...setting, Services: ['service'], Regions: ['eu-west-1', 'us-east-1'] }
  const value = '=AKID%2F20150830%2Fus-east-1%2Fservice%2Faws4_request'
  const found = (query: string | undefined) => scopeOf({ rawHeaders: [], target: { query } }, settings)
  for (const name of ['X-Amz-Credential', 'X-Amz-%43redential', 'X%2DAmz-Credential', 'X%2dAmz%2dCredentia%6C'])
    t.strictSame(found(`a=1&${name}${value}`), scope, name)
  for (const query of [undefined, '', `x-amz-credential${value}`, `a=%2F&b`])
    t.strictSame(found(query), { ...scope, region: 'eu-west-1' })
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
