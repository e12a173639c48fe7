/** Threat T83 of SECURITY.md. */
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { isRefusal, StartupError } from '../../src/base/refusals.ts'
import { parseTarget } from '../../src/base/target.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openCredentials } from '../../src/credentials/credentials.ts'
import { identitiesOf, withCredential } from '../../src/credentials/placement.ts'
import { createCredentialTable } from '../../src/credentials/table.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { testdir } from '../fixtures/testdir.ts'

const agent = { ownerId: 'team', createdAt: 1, id: '11111111-1111-4111-8111-111111111111', policyName: 'shop' }
const other = {
  ownerId: 'team',
  createdAt: 1,
  id: '22222222-2222-4222-8222-222222222222',
  policyName: undefined as never,
}
const env = { KEY: 'k-123', SECOND: 'k-456', EMPTY: '', LINES: 'a\nb', UMLAUT: 'schlüssel', SPACE: ' ' }

type Entry = Readonly<Record<string, unknown>>

const named = { Secrets: [{ Name: 'key', FromEnv: 'KEY' }], Credentials: [{ Name: 'shop', Secret: 'key' }] }
const shop = { name: 'shop', version: 1, value: 'n-1', freshUntil: Infinity, renewAt: Infinity, problem: undefined }
const table = createCredentialTable({
  known: [shop],
  need: () => Promise.reject(new Error('nothing is renewed')),
  onUse: () => {},
  clock: systemClock,
})

function settingsOf(entries: readonly Entry[]) {
  const text = JSON.stringify({ ...named, Upstreams: entries })
  const loaded = loadConfig({ file: { path: 'gateway.yaml', text }, env: {} })
  if ('problems' in loaded) throw new TypeError(JSON.stringify(loaded.problems))
  return loaded.config
}

const openAll = (entries: readonly Entry[], baseDirectory: string) =>
  openCredentials({ ...settingsOf(entries), env, baseDirectory, table, clock: systemClock })

function targetOf(url: string) {
  const target = parseTarget(url)
  if (typeof target === 'string') throw new TypeError(target)
  return target
}

const messageOf = (path: string) => ({ method: 'GET', path, fields: [] as readonly string[], body: null })

/** The fields and the path with which a request is sent, without other fields. */
const openPlaced = async (entries: readonly Entry[], baseDirectory = '.') => {
  const credentials = await openAll(entries, baseDirectory)
  return (url: string, rawHeaders: readonly string[] = [], who = agent) => {
    const target = targetOf(url)
    const picked = credentials.pick({ target, agent: who, rawHeaders, tokenNames: ['gateway-authorization'] })
    if (isRefusal(picked)) return picked
    return credentials.place(picked ?? [], messageOf(target.requestTarget), target.origin)!
  }
}

const open = async (entries: readonly Entry[], baseDirectory = '.') => {
  const placed = await openPlaced(entries, baseDirectory)
  return (...asked: Parameters<typeof placed>) => {
    const found = placed(...asked)
    return isRefusal(found) ? found.refusal : found.fields
  }
}

const rejected = async (t: Test, entry: Entry, pattern: RegExp, directory = '.') => {
  const error = await openAll([{ Host: 'a.example', ...entry }], directory)
    .then(() => undefined)
    .catch(error => error)
  t.type(error, StartupError)
  t.match(error.message, pattern)
  t.notMatch(error.message, /k-123|schl/)
}

t.test('without entries a request gets none', async t => {
  const placed = await openPlaced([])
  t.match(placed('https://a.example/x'), { path: '/x', fields: [] })
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
  const place = { header: 'X-Api-Key', query: undefined }
  t.strictSame(withCredential({ path: '/', fields: sent }, place, 'k-123').fields, expected)
})

t.test('the token of the gateway is not what an agent sends itself: it is kept back', async t => {
  const credentials = await openAll([{ Host: 'a.example', ValueFromEnv: 'KEY' }], '.')
  const picked = credentials.pick({
    target: targetOf('https://a.example/'),
    agent,
    rawHeaders: ['Authorization', 'Bearer token of the gateway'],
    tokenNames: ['gateway-authorization', 'authorization'],
  })
  t.match(picked, [{ place: { header: 'Authorization' } }])
})

t.test('a parameter of the query takes the place of what the agent sent under the same name', async t => {
  const entry = { Host: 'a.example', Credential: 'shop', Query: 'key' }
  const strict = await openPlaced([entry])
  t.match(strict('https://a.example/x?a=1'), { path: '/x?a=1&key=n-1' })
  t.match(strict('https://a.example/x'), { path: '/x?key=n-1' })
  for (const query of ['key=mine', 'KEY=mine', '%6bey=mine', 'a=1&key', 'k%65y=']) {
    t.match(strict(`https://a.example/x?${query}`), { refusal: 'credential_conflict' }, query)
  }
  const replacing = await openPlaced([{ ...entry, Override: 'Replace' }])
  t.match(replacing('https://a.example/x?Key=mine&a=%20&k%65y=2'), { path: '/x?a=%20&key=n-1' })
  const keeping = await openPlaced([{ ...entry, Override: 'Keep' }])
  t.match(keeping('https://a.example/x?key=mine'), { path: '/x?key=mine' })
})

t.test('an entry may be for paths, and each reading of a path must be below them', async t => {
  const fields = await open([{ Host: 'a.example', ValueFromEnv: 'KEY', Paths: ['/v1', '/files/'] }])
  for (const path of ['/v1', '/v1/', '/v1/x', '/v1?a=1', '/files/x']) {
    t.strictSame(fields(`https://a.example${path}`), ['Authorization', 'k-123'], path)
  }
  for (const path of ['/', '/v10', '/v2', '/files', '/V1', '/v1;a=b', '//v1', '/v1%2fx']) {
    t.strictSame(fields(`https://a.example${path}`), [], path)
  }
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

t.test('other entries are used from one moment on; when their values cannot be read, the old ones stay', async t => {
  const directory = testdir(t)
  const write = (text: string) => writeFileSync(join(directory, 'key'), text, { mode: 0o600 })
  const { Upstreams } = settingsOf([{ Host: 'a.example', ValueFromFile: 'key' }])
  write('one\n')
  const credentials = await openAll([{ Host: 'a.example', ValueFromFile: 'key' }], directory)
  const pick = () => {
    const picked = credentials.pick({ target: targetOf('https://a.example/'), agent, rawHeaders: [], tokenNames: [] })
    return isRefusal(picked) || picked === undefined ? [] : picked
  }
  const valueIn = (picked: ReturnType<typeof pick>) =>
    credentials.place(picked, messageOf('/'), targetOf('https://a.example/').origin)?.fields[1]
  const before = pick()
  write('two\r\n')
  const use = await credentials.prepare(Upstreams)
  t.equal(valueIn(pick()), 'one')
  use()
  t.equal(valueIn(pick()), 'two')
  t.equal(valueIn(before), 'one', 'a request that was picked for before')
  write('')
  await t.rejects(credentials.prepare(Upstreams), StartupError)
  const isNew = { ...Upstreams[0]!, Credential: 'new', ValueFromFile: undefined }
  await t.rejects(credentials.prepare([isNew]), { name: 'StartupError', message: /credential new is new. Restart/ })
  t.equal(valueIn(pick()), 'two')
})

t.test('a value that ends while its request is prepared is sent', async t => {
  const clock = { steady: () => 999, now: () => 999 }
  const known = [{ ...shop, freshUntil: 1_000 }]
  const table = createCredentialTable({ known, need: async () => shop, onUse: () => {}, clock })
  const text = JSON.stringify({
    Secrets: [{ Name: 'key', FromEnv: 'KEY' }],
    Credentials: [{ Name: shop.name, Secret: 'key' }],
    Upstreams: [{ Host: 'a.example', Credential: shop.name }],
  })
  const loaded = loadConfig({ file: { path: 'gateway.yaml', text }, env: {} })
  if ('problems' in loaded) throw new TypeError(JSON.stringify(loaded.problems))
  const credentials = await openCredentials({ ...loaded.config, env, baseDirectory: '.', table, clock: systemClock })
  const target = targetOf('https://a.example/')
  const picked = credentials.pick({ target, agent, rawHeaders: [], tokenNames: [] })
  if (isRefusal(picked) || picked === undefined) throw new TypeError('nothing was picked')
  t.equal(credentials.ready(picked, false), undefined)
  clock.steady = () => 1_001
  t.match(credentials.place(picked, messageOf('/'), target.origin)?.fields, [/^authorization$/i, /./])
  t.strictSame(picked[0]?.sent?.secrets, ['n-1'])
  clock.steady = () => 1_100
  t.equal(credentials.place(picked, messageOf('/'), target.origin), undefined, 'it may have waited for the processor')
  clock.steady = () => 999
  table.set({ ...shop, version: 2, value: undefined, freshUntil: 0 })
  t.equal(credentials.place(picked, messageOf('/'), target.origin), undefined, 'it was taken back')
  t.strictSame(picked[0]?.sent?.secrets, ['n-1'], 'what was sent before is still kept out of answers')
  table.set({ ...shop, version: 3, value: 'Basic dXNlcjpwYXNz' })
  t.match(credentials.place(picked, messageOf('/'), target.origin)?.fields.at(-1), /Basic dXNlcjpwYXNz$/)
  t.strictSame(picked[0]?.sent?.secrets, ['dXNlcjpwYXNz'], 'also without the scheme')
})

t.test('after a 401 all credentials of a request must be fresh, and one of them new', async t => {
  let ends = Number.POSITIVE_INFINITY
  const names = ['a', 'b']
  const known = names.map(name => ({ ...shop, name }))
  const need = async (name: string) =>
    name === 'a' ? { ...shop, name, version: 2 } : { ...shop, name, freshUntil: ends }
  const own = createCredentialTable({ known, need, onUse: () => {}, clock: { steady: () => 0, now: () => 0 } })
  const text = JSON.stringify({
    Secrets: [{ Name: 'key', FromEnv: 'KEY' }],
    Credentials: names.map(Name => ({ Name, Secret: 'key' })),
    Upstreams: names.map(Credential => ({ Host: 'a.example', Credential, Header: `X-${Credential}` })),
  })
  const loaded = loadConfig({ file: { path: 'gateway.yaml', text }, env: {} })
  if ('problems' in loaded) throw new TypeError(JSON.stringify(loaded.problems))
  const credentials = await openCredentials({
    ...loaded.config,
    env,
    baseDirectory: '.',
    table: own,
    clock: systemClock,
  })
  const target = targetOf('https://a.example/')
  const picked = credentials.pick({ target, agent, rawHeaders: [], tokenNames: [] })
  if (isRefusal(picked) || picked === undefined) throw new TypeError('nothing was picked')
  t.equal(identitiesOf(picked), 'X-a from a, X-b from b')
  credentials.place(picked, messageOf('/'), target.origin)
  t.equal(await credentials.renew(picked), true)
  ends = -1
  for (const one of picked) one.sent = { secrets: ['n-1'], version: 1 }
  t.equal(await credentials.renew(picked), false, 'the life of b has ended')
})
