import t from 'tap'
import { createIncidents, type Incident } from '../../src/limits/incidents.ts'
import { megabytesInUse } from '../fixtures/memory.ts'

const minute = 60_000
let next = 0
const incident = (more: Partial<Incident> = {}): Incident => ({
  at: 0,
  agentId: 'a1',
  requestId: `r${++next}`,
  method: 'POST',
  origin: 'https://a.example',
  path: '/x',
  outcome: 'policy_denied',
  denied: true,
  policy: 'p',
  rule: 'r',
  hitlId: null,
  ...more,
})

t.test('the latest of each agent are kept, the latest first', async t => {
  const incidents = createIncidents({ agents: 2, ofAgent: 2, names: 9, hostsOfAgent: 9 })
  for (const path of ['/1', '/2', '/3']) incidents.note(incident({ path }))
  t.strictSame(
    incidents.of('a1').map(({ path }) => path),
    ['/3', '/2'],
  )
  incidents.note(incident({ agentId: 'a2' }))
  incidents.note(incident({ agentId: 'a1' }))
  incidents.note(incident({ agentId: 'a3' }))
  t.strictSame([incidents.of('a1').length, incidents.of('a2').length, incidents.of('a3').length], [2, 0, 1])
  incidents.note(incident({ path: `/${'x'.repeat(9_000)}` }))
  t.equal(incidents.of('a1')[0]!.path.length, 201)
})

t.test('those that another gateway sends later are where they belong', async t => {
  const incidents = createIncidents()
  for (const [at, path] of [
    [1, '/a'],
    [3, '/b'],
    [3, '/c'],
    [2, '/d'],
  ] as const)
    incidents.note(incident({ at, path }))
  t.strictSame(
    incidents.of('a1').map(({ path }) => path),
    ['/c', '/b', '/d', '/a'],
  )
})

t.test('denials of the last hour are ranked by rule, host and agent', async t => {
  const incidents = createIncidents()
  incidents.note(incident({ at: minute, rule: 'old' }))
  for (const at of [30, 31, 32]) incidents.note(incident({ at: at * minute }))
  incidents.note(incident({ at: 33 * minute, agentId: 'a2', origin: 'https://b.example', rule: null }))
  incidents.note(incident({ at: 33 * minute, denied: false, outcome: 'suspended', rule: 'held' }))
  t.strictSame(incidents.denials(40 * minute), {
    rules: [
      { name: 'p/r', count: 3 },
      { name: 'p/old', count: 1 },
      { name: 'p/', count: 1 },
    ],
    hosts: [
      { name: 'https://a.example', count: 4 },
      { name: 'https://b.example', count: 1 },
    ],
    agents: [
      { name: 'a1', count: 4 },
      { name: 'a2', count: 1 },
    ],
  })
  t.strictSame(
    incidents.denials(65 * minute).rules.map(({ name }) => name),
    ['p/r', 'p/'],
  )
  t.strictSame(incidents.denials(24 * 60 * minute).rules, [])
})

t.test('names that an agent makes up take no more room than there is, and push nothing out', async t => {
  const incidents = createIncidents({ agents: 2, ofAgent: 2, names: 3, hostsOfAgent: 3 })
  incidents.note(incident({ origin: 'https://real.example' }))
  for (let count = 0; count < 100; count++) incidents.note(incident({ origin: `https://${count}.example` }))
  incidents.note(incident({ origin: 'https://real.example' }))
  const { hosts } = incidents.denials(0)
  t.equal(hosts.length, 3)
  t.strictSame(hosts[0], { name: 'https://real.example', count: 2 })
})

t.test('hosts that one agent makes up leave room for those of the others', async t => {
  const incidents = createIncidents()
  for (let count = 0; count < 1_000; count++) incidents.note(incident({ origin: `https://${count}.example` }))
  for (let count = 0; count < 2; count++) incidents.note(incident({ agentId: 'a2', origin: 'https://real.example' }))
  t.strictSame(incidents.denials(0).hosts[0], { name: 'https://real.example', count: 2 })
})

t.test('what is kept of a long URL is no longer than it', async t => {
  const incidents = createIncidents()
  const before = megabytesInUse()
  for (let count = 0; count < 2_000; count++) {
    const url = Buffer.from(`/orders/of/customer/${count}?q=${'x'.repeat(15_000)}`).toString()
    incidents.note(incident({ agentId: `a${count % 100}`, path: url.slice(0, url.indexOf('?')) }))
  }
  const grown = megabytesInUse() - before
  t.ok(grown < 10, `${grown} MB`)
  t.equal(incidents.of('a1')[0]?.path, '/orders/of/customer/1901')
})
