import { networkInterfaces } from 'node:os'
import t from 'tap'
import type { NameRules } from '../../src/upstream/name-rules.ts'
import { createSystemLookup, systemLookup } from '../../src/upstream/system-lookup.ts'
import { startNameServer } from '../fixtures/name-server.ts'

const plain: NameRules = { hosts: new Map(), search: [], ndots: 1, hasOtherSources: false }
const patient = () => new AbortController().signal
const noFallback = async () => {
  throw new Error('the system was asked')
}

const server = await startNameServer(t, name => {
  if (name.startsWith('dead')) return 'silent'
  if (name.startsWith('broken')) return 'fail'
  const known: Record<string, readonly string[]> = {
    'a.example': ['10.0.0.1', '10.0.0.2'],
    'both.example': ['10.0.0.3', '::7'],
    'api.team.example': ['10.0.0.4'],
  }
  return known[name] ?? 'none'
})

const lookupWith = (rules: Partial<NameRules>, fallback = noFallback as () => Promise<readonly string[]>) =>
  createSystemLookup({ rules: () => ({ ...plain, ...rules }), servers: [server.address], fallback })

t.test('the hosts file comes first, and localhost is this machine without it', async t => {
  const lookup = lookupWith({ hosts: new Map([['a.example', ['192.0.2.1']]]) })
  t.strictSame(await lookup('a.example', patient()), ['192.0.2.1'])
  t.strictSame(await lookup('localhost', patient()), ['127.0.0.1', '::1'])
  t.strictSame(server.asked, [], 'nobody was asked')
})

t.test('DNS gives all addresses, of the family first that this machine can reach', async t => {
  const lookup = lookupWith({})
  t.strictSame((await lookup('a.example', patient())).toSorted(), ['10.0.0.1', '10.0.0.2'])
  const reachesIPv6 = Object.values(networkInterfaces())
    .flat()
    .some(entry => entry?.family === 'IPv6' && !entry.internal && !entry.address.startsWith('fe80:'))
  const both = ['10.0.0.3', '::7']
  t.strictSame(await lookup('both.example', patient()), reachesIPv6 ? both.reverse() : both)
})

t.test('search domains are tried in their order', async t => {
  const lookup = lookupWith({ search: ['other.example', 'team.example'] })
  t.strictSame(await lookup('api', patient()), ['10.0.0.4'])
  const names = server.asked.filter(asked => asked.startsWith('api') && asked.endsWith(' A'))
  t.strictSame(names, ['api.other.example A', 'api.team.example A'])
})

t.test('a short name stands for no name that may not be found', async t => {
  const rules = { search: ['team.example', 'other.example'], hasOtherSources: true }
  const mayFind = (name: string) => name !== 'api.team.example'
  const asked: string[] = []
  const fallback = async (name?: string) => {
    asked.push(`${name}`)
    return []
  }
  t.strictSame(await lookupWith(rules, fallback)('api', patient(), mayFind), [])
  t.strictSame(asked, ['api.'], 'the system is kept from its search domains')
  t.strictSame(await lookupWith(rules, fallback)('api.team.example', patient(), mayFind), ['10.0.0.4'], 'itself')
  t.strictSame(await lookupWith(rules, fallback)('nobody', patient(), mayFind), [])
  t.strictSame(asked, ['api.', 'nobody'])
})

t.test('a name that is nowhere, a server that fails and a silent one are distinguished', async t => {
  const lookup = lookupWith({})
  await t.rejects(lookup('none.example', patient()), { code: 'ENOTFOUND' })
  await t.rejects(lookup('broken.example', patient()), { code: 'ESERVFAIL' })
  const giveUp = new AbortController()
  const dead = lookup('dead.example', giveUp.signal)
  giveUp.abort()
  await t.rejects(dead, { code: 'ECANCELLED' })
})

t.test('only where names are found in other ways is the system asked as well', async t => {
  const fallback = async () => ['192.0.2.9']
  t.strictSame(await lookupWith({ hasOtherSources: true }, fallback)('printer', patient()), ['192.0.2.9'])
  t.strictSame(
    await lookupWith({ hasOtherSources: true }, noFallback)('a.example', patient()).then(all => all.length),
    2,
  )
  await t.rejects(lookupWith({}, fallback)('printer', patient()), { code: 'ENOTFOUND' })
})

t.test('a dead name does not delay others', async t => {
  const lookup = lookupWith({})
  const giveUp = new AbortController()
  const dead = Array.from({ length: 32 }, (_, i) => lookup(`dead${i}.example`, giveUp.signal))
  t.equal((await lookup('a.example', patient())).length, 2)
  giveUp.abort()
  for (const one of dead) await t.rejects(one)
})

t.test('the rules of this machine find localhost', async t => {
  t.ok((await systemLookup('localhost', patient())).includes('127.0.0.1'))
})
