/** Secrets in stores that speak HTTP. Threat T83 of SECURITY.md. */
import t from 'tap'
import type { CredentialSetting, SecretSetting } from '../../src/config/credentials.ts'
import { readSecretUrl } from '../../src/credentials/secret-url.ts'
import type { CredentialState } from '../../src/credentials/state.ts'
import { createClock } from '../fixtures/clock.ts'
import { clientSetting, tokenServer } from '../fixtures/token-server.ts'

const clock = createClock()
const keys = JSON.stringify({ keyId: 'AKIDEXAMPLE', secretKey: 'very-secret', sessionToken: 'session' })

/** Reads a secret of a store whose credential has these values, one after the other. */
function open(
  more: Partial<SecretSetting>,
  credential: Partial<CredentialSetting> = {},
  values = ['token-a', 'token-b'],
) {
  const server = tokenServer()
  const setting: SecretSetting = {
    ...{ Name: 'db', FromEnv: undefined, FromFile: undefined, FromCommand: [], Pointer: undefined, Encoding: 'Text' },
    ...{ FromUrl: 'https://store.example:8200/v1/secret/data/db?version=2', Credential: 'login', Body: undefined },
    ...{ EverySeconds: 300, ...more },
  }
  const need = async (name: string, refused: number | undefined): Promise<CredentialState> => {
    const version = Math.min((refused ?? 0) + 1, values.length)
    const isThere = values.length > 0
    const problem = isThere ? undefined : ({ kind: 'needed', text: 'nobody has connected it' } as const)
    return { name, version, value: values[version - 1], freshUntil: Infinity, renewAt: Infinity, problem }
  }
  const credentials = [clientSetting({ Name: 'login', ...credential })]
  const parts = { ownRequests: server, clock, credentials, need, signal: new AbortController().signal }
  return { server, read: async () => (await readSecretUrl(setting, parts)).text }
}

t.test('a document is read with the token of its store', async t => {
  const cases: [Partial<CredentialSetting>, string, string][] = [
    [{ Type: 'Vault' }, 'x-vault-token', 'token-a'],
    [{ Type: 'ClientCredentials' }, 'authorization', 'Bearer token-a'],
    [{ Type: 'Value' }, 'authorization', 'Bearer token-a'],
    [{ Type: 'Basic' }, 'authorization', 'token-a'],
  ]
  for (const [credential, field, value] of cases) {
    const { server, read } = open({}, credential)
    server.answer = '{"data":1}'
    t.equal(await read(), '{"data":1}')
    const [asked] = server.asked
    t.match(asked, { method: 'GET', url: 'https://store.example:8200/v1/secret/data/db?version=2', body: '' })
    t.equal(asked?.fields[field], value, JSON.stringify(credential))
    t.equal(asked?.fields['accept-encoding'], 'identity')
  }
  const { server, read } = open({ Credential: undefined })
  await read()
  t.equal(server.asked[0]?.fields['authorization'], undefined, 'a store beside the gateway may want none')
})

t.test('stores of AWS are asked with a signature over the body', async t => {
  const Body = '{"SecretId":"prod/db"}'
  const url = 'https://secretsmanager.eu-central-1.amazonaws.com/'
  const aws = { Type: 'Aws', Services: ['secretsmanager'], Regions: ['eu-central-1'] } as const
  const { server, read } = open({ FromUrl: url, Body }, aws, [keys])
  await read()
  const [asked] = server.asked
  t.match(asked, { method: 'POST', url, body: Body })
  t.match(asked?.fields, { 'content-type': 'application/x-amz-json-1.1', 'x-amz-security-token': 'session' })
  t.equal(asked?.fields['x-amz-target'], 'secretsmanager.GetSecretValue')
  t.match(
    asked?.fields['authorization'],
    /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-central-1\/secretsmanager\/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, Signature=[0-9a-f]{64}$/,
  )
  t.notMatch(JSON.stringify(asked), /very-secret/)
})

t.test('a token that the store refuses is renewed once', async t => {
  for (const status of [401, 403]) {
    const { server, read } = open({}, { Type: 'Vault' })
    server.onAsk = ({ fields }) => {
      server.status = fields['x-vault-token'] === 'token-b' ? 200 : status
    }
    server.answer = 'the value'
    t.equal(await read(), 'the value')
    t.equal(server.asked.length, 2)
  }
  const { server, read } = open({}, { Type: 'Vault' }, ['token-a'])
  server.status = 403
  await t.rejects(read(), /The store of the secret db answers with status 403\./)
  t.equal(server.asked.length, 1, 'there was no other token')
})

t.test('what is wrong is told without the answer', async t => {
  const { server, read } = open({})
  server.answer = 'hidden'
  server.status = 500
  const error = await read().catch(error => error)
  t.equal(error.message, 'The store of the secret db answers with status 500.')
  server.status = 200
  server.fields = ['Content-Encoding', 'gzip']
  await t.rejects(read(), { message: 'The store of the secret db sent a compressed answer.' })
  const { server: other, read: never } = open({}, {}, [])
  await t.rejects(never(), { kind: 'needed', message: /The credential login of its store has no value/ })
  t.equal(other.asked.length, 0, 'nothing leaves without a token')
})
