/** Roles for the identity of a workload: the token of a service account of Kubernetes, for one. */
import t from 'tap'
import type { CredentialSetting } from '../../src/config/credentials.ts'
import { keysIn } from '../../src/credentials/aws.ts'
import { createClock } from '../fixtures/clock.ts'
import { clientSetting, obtainFrom, type TokenServer, tokenServer } from '../fixtures/token-server.ts'

const clock = createClock()
function obtain(server: TokenServer, more: Partial<CredentialSetting>) {
  return obtainFrom(server, 'workload.jwt.sig', { setting: clientSetting(more), clock })
}

const role = 'arn:aws:iam::123456789012:role/gateway'
const aws = { Type: 'Aws', Subject: role, TokenUrl: undefined, Services: ['s3'], Regions: ['eu-central-1'] } as const
const ending = (ms: number) => new Date(clock.now() + ms).toISOString()
const assumed = (end: string) =>
  `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><SessionToken>sess/+=</SessionToken><SecretAccessKey>sec/+ret</SecretAccessKey><Expiration>${end}</Expiration><AccessKeyId>ASIA1</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`

t.test('a role of AWS is had for the token of the workload', async t => {
  const server = tokenServer()
  server.answer = assumed(ending(3_600_000))
  const { value, lifetimeMs } = await obtain(server, aws)
  t.strictSame(keysIn({ value }), { keyId: 'ASIA1', secretKey: 'sec/+ret', sessionToken: 'sess/+=' })
  t.equal(lifetimeMs, 3_600_000)
  const [asked] = server.asked
  t.equal(asked?.url, 'https://sts.eu-central-1.amazonaws.com/')
  t.match(asked?.form, { Action: 'AssumeRoleWithWebIdentity', RoleArn: role, WebIdentityToken: 'workload.jwt.sig' })
  t.equal(asked?.fields['authorization'], undefined, 'the request is not signed')
  await obtain(server, { ...aws, TokenUrl: 'https://sts.example/' })
  t.equal(server.asked[1]?.url, 'https://sts.example/')
})

t.test('a refusal of AWS is told with its code alone', async t => {
  const server = tokenServer()
  const cases: [number, string, RegExp][] = [
    [
      400,
      '<Error><Code>ExpiredTokenException</Code><Message>hidden</Message></Error>',
      /answers ExpiredTokenException/,
    ],
    [403, '<Error><Code>hidden hidden</Code></Error>', /answers an error \(status 403\)/],
    [200, '<hidden/>', /must be JSON with AccessKeyId/],
    [200, assumed(ending(-1)), /The keys of shop have ended/],
  ]
  for (const [status, answer, text] of cases) {
    Object.assign(server, { status, answer })
    const error = await obtain(server, aws).catch(error => error)
    t.match(error, { kind: 'failing', message: text })
    t.notMatch(error.message, /hidden|workload/)
  }
})

t.test('a token is exchanged (RFC 8693), and acts for a service account of Google where one is named', async t => {
  const server = tokenServer()
  server.answer = {
    access_token: 'sts-1',
    issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    token_type: 'Bearer',
    expires_in: 600,
  }
  const google = { Type: 'TokenExchange', TokenUrl: 'https://sts.example/v1/token', ClientId: undefined } as const
  const more = { ...google, Audience: '//iam.googleapis.com/pool', Scope: 'cloud read' }
  t.strictSame(await obtain(server, more), { value: 'sts-1', lifetimeMs: 600_000 })
  t.strictSame(server.asked[0]?.form, {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    ...{ scope: 'cloud read', audience: '//iam.googleapis.com/pool', subject_token: 'workload.jwt.sig' },
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  })
  await obtain(server, { ...more, ClientId: 'gateway' })
  t.equal(server.asked[1]?.form['client_id'], 'gateway')
  server.onAsk = ({ url }) => {
    if (url.includes('iamcredentials')) server.answer = { accessToken: 'sa-1', expireTime: ending(900_000) }
  }
  const acted = await obtain(server, { ...more, Subject: 'bot@p.iam.gserviceaccount.com' })
  t.strictSame(acted, { value: 'sa-1', lifetimeMs: 900_000 })
  const last = server.asked.at(-1)
  t.match(last?.url, /serviceAccounts\/bot%40p\.iam\.gserviceaccount\.com:generateAccessToken$/)
  t.equal(last?.fields['authorization'], 'Bearer sts-1')
  t.strictSame(JSON.parse(last?.body ?? ''), { scope: ['cloud', 'read'] })
  server.onAsk = ({ url }) => {
    server.status = url.includes('iamcredentials') ? 403 : 200
    server.answer = { access_token: 'sts-1', token_type: 'Bearer' }
  }
  await t.rejects(obtain(server, { ...more, Subject: 'bot@p' }), { message: 'Google answers with status 403.' })
})

t.test('a client says who it is by the assertion of another server (RFC 7523 section 2.2)', async t => {
  const server = tokenServer()
  await obtain(server, { ClientAuth: 'Assertion', Scope: 'https://vault.example/.default' })
  t.strictSame(server.asked[0]?.form, {
    ...{ grant_type: 'client_credentials', scope: 'https://vault.example/.default', client_id: 'a client' },
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: 'workload.jwt.sig',
  })
})
