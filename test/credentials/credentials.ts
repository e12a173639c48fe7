import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createOrigin } from '../../src/base/origin.ts'
import { isRefusal, StartupError } from '../../src/base/refusals.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openCredentials, withCredentials } from '../../src/credentials/credentials.ts'
import { testdir } from '../fixtures/testdir.ts'

const agent = { id: '11111111-1111-4111-8111-111111111111', policyName: 'shop' }
const other = { id: '22222222-2222-4222-8222-222222222222', policyName: undefined as never }
const env = { KEY: 'k-123', SECOND: 'k-456', EMPTY: '', LINES: 'a\nb', UMLAUT: 'schlüssel', SPACE: ' ' }

type Entry = Readonly<Record<string, unknown>>

function settingsOf(entries: readonly Entry[]) {
  const loaded = loadConfig({ file: { path: 'gateway.yaml', text: JSON.stringify({ Upstreams: entries }) }, env: {} })
  if ('problems' in loaded) throw new TypeError(JSON.stringify(loaded.problems))
  return loaded.config.Upstreams
}

const open = async (entries: readonly Entry[], baseDirectory = '.') => {
  const credentials = await openCredentials(settingsOf(entries), { env, baseDirectory })
  return (url: string, rawHeaders: readonly string[] = [], who = agent) => {
    const { protocol, hostname, port } = new URL(url)
    const scheme = protocol === 'http:' ? 'http' : 'https'
    const origin = createOrigin(scheme, hostname, Number(port) || (scheme === 'http' ? 80 : 443))
    const fields = credentials!.fieldsFor({ origin, agent: who, rawHeaders, tokenNames: ['gateway-authorization'] })
    return isRefusal(fields) ? fields.refusal : fields
  }
}

const rejected = async (t: Test, entry: Entry, pattern: RegExp, directory = '.') => {
  const error = await openCredentials(settingsOf([{ Host: 'a.example', ...entry }]), { env, baseDirectory: directory })
    .then(() => undefined)
    .catch(error => error)
  t.type(error, StartupError)
  t.match(error.message, pattern)
  t.notMatch(error.message, /k-123|schl/)
}

t.test('without entries there is nothing to ask per request', async t => {
  t.equal(await openCredentials([], { env, baseDirectory: '.' }), undefined)
})

t.test('the field goes to the host over TLS and its usual port only, unless the entry says otherwise', async t => {
  const fields = await open([{ Host: 'api.example', ValueFromEnv: 'KEY', Prefix: 'Bearer ' }])
  t.strictSame(fields('https://api.example/'), ['Authorization', 'Bearer k-123'])
  for (const url of [
    'http://api.example/',
    'https://api.example:8443/',
    'https://b.api.example/',
    'https://example/',
  ]) {
    t.strictSame(fields(url), [], url)
  }
  const local = await open([{ Host: '127.0.0.1:11434', ValueFromEnv: 'KEY', Header: 'X-Api-Key', AllowHttp: true }])
  t.strictSame(local('http://127.0.0.1:11434/'), ['X-Api-Key', 'k-123'])
  t.strictSame(local('http://127.0.0.1:9999/'), [], 'what an agent started itself on the same machine')
  t.strictSame(local('http://127.0.0.1/'), [])
  const six = await open([{ Host: '[::1]:8443', ValueFromEnv: 'KEY' }])
  t.strictSame(six('https://[::1]:8443/'), ['Authorization', 'k-123'])
})

t.test('an entry may be for one agent, or for the agents of one policy', async t => {
  const entry = { Host: '*.example', ValueFromEnv: 'KEY' }
  const own = await open([{ ...entry, Agent: agent.id.toUpperCase() }])
  t.strictSame(own('https://a.example/'), ['Authorization', 'k-123'])
  t.strictSame(own('https://a.example/', [], other), [])
  const policy = await open([{ ...entry, Policy: 'shop' }])
  t.strictSame(policy('https://a.example/'), ['Authorization', 'k-123'])
  t.strictSame(policy('https://a.example/', [], other), [])
})

t.test('of several entries for one field the first counts; different fields are all sent', async t => {
  const fields = await open([
    { Host: 'a.example', ValueFromEnv: 'KEY' },
    { Host: '*.example', ValueFromEnv: 'SECOND', Header: 'authorization' },
    { Host: '*.example', ValueFromEnv: 'SECOND', Header: 'X-Key' },
  ])
  t.strictSame(fields('https://a.example/'), ['Authorization', 'k-123', 'X-Key', 'k-456'])
  t.strictSame(fields('https://b.example/'), ['authorization', 'k-456', 'X-Key', 'k-456'])
})

t.test('an agent that sends the field itself is refused, or its value is kept or replaced', async t => {
  const entry = { Host: 'a.example', ValueFromEnv: 'KEY', Header: 'X-Api-Key' }
  const strict = await open([entry])
  for (const name of ['X-Api-Key', 'x-api-key', 'X_Api_Key', 'x.api.key']) {
    t.equal(strict('https://a.example/', [name, 'mine']), 'credential_conflict', name)
    t.strictSame(strict('https://b.example/', [name, 'mine']), [], name)
  }
  const keeping = await open([{ ...entry, Override: 'Keep' }])
  t.strictSame(keeping('https://a.example/', ['X-Api-Key', 'mine']), [])
  t.strictSame(keeping('https://a.example/'), ['X-Api-Key', 'k-123'])
  const replacing = await open([{ ...entry, Override: 'Replace' }])
  t.strictSame(replacing('https://a.example/', ['X-Api-Key', 'mine']), ['X-Api-Key', 'k-123'])
})

t.test('a credential takes the place of every field that an upstream may read as it', async t => {
  const sent = ['Accept', '*/*', 'x-api-key', 'mine', 'X_Api_Key', 'mine', 'X-Api-Key-2', 'other']
  const expected = ['Accept', '*/*', 'X-Api-Key-2', 'other', 'X-Api-Key', 'k-123']
  t.strictSame(withCredentials(sent, ['X-Api-Key', 'k-123']), expected)
  t.strictSame(withCredentials(['Accept', '*/*'], []), ['Accept', '*/*'])
})

t.test('the token of the gateway is not what an agent sends itself: it is kept back', async t => {
  const credentials = await openCredentials(settingsOf([{ Host: 'a.example', ValueFromEnv: 'KEY' }]), {
    env,
    baseDirectory: '.',
  })
  const fields = credentials!.fieldsFor({
    origin: createOrigin('https', 'a.example', 443),
    agent,
    rawHeaders: ['Authorization', 'Bearer token of the gateway'],
    tokenNames: ['gateway-authorization', 'authorization'],
  })
  t.strictSame(fields, ['Authorization', 'k-123'])
})

t.test('a value that is missing or cannot be sent stops the start, and the message does not repeat it', async t => {
  await rejected(t, { ValueFromEnv: 'NOT_THERE' }, /^Upstreams\[0\]: the environment variable NOT_THERE does not exist/)
  for (const name of ['EMPTY', 'LINES', 'UMLAUT', 'SPACE']) {
    await rejected(t, { ValueFromEnv: name, Prefix: 'Bearer ' }, /must hold one line of printable ASCII/)
  }
  const directory = testdir(t, { open: 'k-123\n' })
  await rejected(t, { ValueFromFile: 'none' }, /does not exist/, directory)
  chmodSync(join(directory, 'open'), 0o644)
  await rejected(t, { ValueFromFile: 'open' }, /chmod 600/, directory)
})
