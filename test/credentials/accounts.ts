/** Whose account a request gets, and who may connect it. Threat T91. */
import t from 'tap'
import { isRefusal } from '../../src/base/refusals.ts'
import { parseTarget } from '../../src/base/target.ts'
import { loadConfig } from '../../src/config/load.ts'
import { keyFor, keyOfAccount, mayConnect } from '../../src/credentials/accounts.ts'
import { beginConnection, takeConnection } from '../../src/credentials/connection.ts'
import { openCredentials } from '../../src/credentials/credentials.ts'
import { OwnClients } from '../../src/credentials/own-clients.ts'
import { identitiesOf, namesOf } from '../../src/credentials/placement.ts'
import { openRow, sealRow } from '../../src/credentials/stored-row.ts'
import { createCredentialTable } from '../../src/credentials/table.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { type ConsentRecord, keyText, parseKey, subjectFacts } from '../../src/storage/credentials.ts'
import { createClock } from '../fixtures/clock.ts'
import { clientSetting, tokenServer } from '../fixtures/token-server.ts'

const setting = (Per: 'Agent' | 'Owner' | 'All') =>
  clientSetting({ Type: 'Connect', Name: 'mail', Per, ClientAuth: 'None', AuthorizationUrl: 'https://idp.example/a' })
const agent = { id: 'a1', ownerId: 'anna x', createdAt: 5 }
const agentOf = (id: string) => (id === agent.id ? agent : undefined)

t.test('the key of an account has its subject, and no two keys are one text', async t => {
  const keys = (['Agent', 'Owner', 'All'] as const).map(per => keyFor(setting(per), agent))
  t.strictSame(keys.map(keyText), ['mail agent a1 5', 'mail owner anna x', 'mail all'])
  for (const key of keys) t.strictSame(parseKey(keyText(key)), key)
  t.strictSame(parseKey('mail'), { name: 'mail', subject: '' })
  t.strictSame(
    keys.map(({ subject }) => subjectFacts(subject)),
    [{ agentId: 'a1' }, { ownerId: 'anna x' }, {}],
  )
  const again = keyFor(setting('Agent'), { ...agent, createdAt: 6 })
  t.not(keyText(again), keyText(keys[0]!), 'an agent that is registered again with the same id')
  t.not(keyText(keyFor(setting('Owner'), { ...agent, ownerId: 'bob' })), keyText(keys[1]!), 'another owner')
  t.equal(keyFor(clientSetting(), agent).subject, '')
})

t.test('an account is named as its credential has it', async t => {
  const subjectOf = (per: 'Agent' | 'Owner' | 'All', of: object) => keyOfAccount(setting(per), of, agentOf)?.subject
  t.equal(subjectOf('Agent', { agentId: 'a1' }), 'agent a1 5')
  t.equal(subjectOf('Owner', { agentId: 'a1' }), 'owner anna x')
  t.equal(subjectOf('Owner', { ownerId: 'bob' }), 'owner bob')
  for (const named of [{}, { agentId: 'a1' }]) t.equal(subjectOf('All', named), 'all')
  for (const [per, named] of [
    ['Agent', {}],
    ['Agent', { agentId: 'a2' }],
    ['Agent', { agentId: 'a1', ownerId: 'anna x' }],
    ['Owner', {}],
    ['All', { ownerId: 'bob' }],
  ] as const)
    t.equal(subjectOf(per, named), undefined)
})

t.test('an admin connects all, an owner the own, and nobody an agent that is not there', async t => {
  const person = (ownerId: string, ...roles: ('agent' | 'reviewer' | 'admin')[]) => ({ ownerId, roles })
  const may = (who: ReturnType<typeof person>, subject: string) => mayConnect(who, subject, agentOf)
  const subjects = ['agent a1 5', 'owner anna x', 'all']
  t.strictSame(
    subjects.map(subject => may(person('other', 'admin'), subject)),
    [true, true, true],
  )
  t.strictSame(
    subjects.map(subject => may(person('anna x', 'reviewer'), subject)),
    [true, true, false],
  )
  t.strictSame(
    subjects.map(subject => may(person('other', 'reviewer'), subject)),
    [false, false, false],
  )
  t.strictSame(
    subjects.map(subject => may(person('anna x', 'agent'), subject)),
    [false, false, false],
  )
  for (const subject of ['agent a1 4', 'agent a2 5']) t.equal(may(person('anna x', 'admin'), subject), false)
})

t.test('a consent opens for the person, the tab and the credential that began it, until it ends', async t => {
  const clock = createClock()
  let kept: ConsentRecord | undefined
  const table = {
    async keepConsent(consent: ConsentRecord) {
      kept = consent
    },
    takeConsent: async (hash: string, now: number) => (kept?.hash === hash && kept.expiresAt > now ? kept : undefined),
  }
  const sourceParts = { clock, ownRequests: tokenServer(), servers: new Map(), secrets: { read: async () => '' } }
  const sealingKeys = [Buffer.alloc(32, 1)] as const
  const clientTable = { of: async () => undefined, put: async () => true }
  const clients = new OwnClients({ table: clientTable, sealingKeys, sourceParts, clock, origin: undefined })
  const parts = { table, sealingKeys, clients, clock }
  const key = keyFor(setting('Agent'), agent)
  const redirectUri = 'https://gateway.example/console/connected/mail'
  const asked = { key, personId: 'anna', redirectUri, terms: { more: [] } }
  const { url, session } = await beginConnection(setting('Agent'), asked, parts)
  const answer = new URLSearchParams({ state: new URL(url).searchParams.get('state')!, code: 'c' })
  const given = { name: 'mail', personId: 'anna', session, answer }
  t.match(await takeConnection(given, parts), { key })
  for (const other of [{ name: 'other' }, { personId: 'bob' }, { session: 'x' }, { answer: new URLSearchParams() }])
    t.equal(await takeConnection({ ...given, ...other }, parts), undefined)
  const otherKeys = { ...parts, sealingKeys: [Buffer.alloc(32, 2)] as const }
  t.equal(await takeConnection(given, otherKeys), undefined)
  t.notOk(Buffer.from(kept!.sealed).includes('verifier'))
  clock.advance(600_000)
  t.equal(await takeConnection(given, parts), undefined)
})

t.test('a missing account is refused with the way to it, and one that is gone is forgotten', async t => {
  const clock = createClock()
  const problem = { kind: 'needed', text: 'connect it' } as const
  const state = (name: string) => ({ name, version: 0, value: undefined, freshUntil: 0, renewAt: 0, problem })
  const need = async (name: string) => state(name)
  const parts = { known: [{ ...state('mail all'), value: 'v', freshUntil: Infinity, renewAt: Infinity }], need, clock }
  const table = createCredentialTable({
    ...parts,
    onUse: () => {},
    connectUrl: ({ subject }) => `https://c/${subject}`,
  })
  t.match(await table.ready({ name: 'mail agent a1 5', agentId: 'a1' }, false), {
    ...{ refusal: 'credential_needed', status: 403, detail: /at https:\/\/c\/agent a1 5\. A retry/ },
    members: { credential: 'mail', connect: 'https://c/agent a1 5' },
  })
  const nowhere = createCredentialTable({ ...parts, onUse: () => {} })
  t.match(await nowhere.ready({ name: 'mail owner x', agentId: 'a1' }, false), {
    detail: /in the console/,
    members: { credential: 'mail' },
  })
  t.equal(table.ready({ name: 'mail all', agentId: 'a1' }, false), undefined)
  table.set({ ...state('mail all'), isGone: true })
  t.equal(table.fresh({ name: 'mail all', agentId: 'a1' }), undefined)
})

t.test('the tokens of one subject do not open as those of another', async t => {
  const keys = [Buffer.alloc(32, 1)] as const
  const row = { version: 1, state: 'ready', rotates: 1, held: { refreshToken: 'r-1', seeds: [] } } as const
  const stored = sealRow(keys, { name: 'mail', subject: 'agent a1 5' }, row)
  t.match(openRow(keys, stored), row)
  for (const other of [{ subject: 'agent a1 6' }, { subject: '' }, { name: 'post' }, { version: 2 }])
    t.throws(() => openRow(keys, { ...stored, ...other }), { message: /cannot be opened/ })
})

t.test('what was approved for one account is not approved for another', async t => {
  const text = JSON.stringify({
    Secrets: [{ Name: 'key', FromEnv: 'KEY' }],
    Credentials: [{ Name: 'mail', Type: 'Connect', Secret: 'key', Issuer: 'https://idp.example', ClientId: 'g' }],
    Upstreams: [{ Host: 'a.example', Credential: 'mail' }],
  })
  const loaded = loadConfig({ file: { path: 'gateway.yaml', text }, env: {} })
  const target = parseTarget('https://a.example/')
  if ('problems' in loaded || typeof target === 'string') throw new TypeError('not as the test needs it')
  const table = createCredentialTable({
    known: [],
    need: () => Promise.reject(new Error('nothing is asked for')),
    onUse: () => {},
    clock: createClock(),
  })
  const credentials = await openCredentials({
    ...loaded.config,
    env: {},
    baseDirectory: '.',
    table,
    clock: systemClock,
  })
  const identityFor = (over: object) => {
    const picked = credentials.pick({
      ...{ target, rawHeaders: [], tokenNames: [] },
      agent: { ...agent, policyName: null, ...over },
    })
    return isRefusal(picked) ? picked : [namesOf(picked), identitiesOf(picked)]
  }
  t.strictSame(identityFor({}), ['mail', 'Authorization from mail agent a1 5'])
  t.strictSame(identityFor({ createdAt: 6 }), ['mail', 'Authorization from mail agent a1 6'])
})
