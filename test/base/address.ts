/** Threats T03 and T05 of SECURITY.md: an address has one spelling and one class, wherever it is judged. */
import fc from 'fast-check'
import t from 'tap'
import { AddressRanges, canonicalAddress, classifyAddress, networkOf, parseRange } from '../../src/base/address.ts'
import { runPolicyTest } from '../../src/policies/policy-tests.ts'
import { decideHead } from '../../src/policy/evaluation/decide.ts'
import { explainDescription } from '../../src/policy/evaluation/explain.ts'
import { destinationOf } from '../../src/policy/request/facts.ts'
import { described, rulebookOf } from '../fixtures/rulebook.ts'
import { runs } from '../fixtures/runs.ts'

/** Address, its one spelling, its class on the data plane, and the class that rules see where it differs. */
const table: readonly (readonly [given: string, canonical: string, kind: string, seen?: string])[] = [
  ['93.184.216.34', '93.184.216.34', 'public'],
  ['2606:4700::1', '2606:4700::1', 'public'],
  ['2606:4700:0:0:0:0:0:1', '2606:4700::1', 'public'],
  ['10.0.0.1', '10.0.0.1', 'private'],
  ['::ffff:10.0.0.1', '10.0.0.1', 'private'],
  ['::FFFF:0a00:0001', '10.0.0.1', 'private'],
  ['0:0:0:0:0:ffff:10.0.0.1', '10.0.0.1', 'private'],
  ['100.64.0.1', '100.64.0.1', 'private'],
  ['fd00::1', 'fd00::1', 'private'],
  ['FD00::0:1', 'fd00::1', 'private'],
  ['fec0::1', 'fec0::1', 'private'],
  ['127.9.9.9', '127.9.9.9', 'loopback'],
  ['::1', '::1', 'loopback'],
  ['0:0::1', '::1', 'loopback'],
  ['::ffff:7f00:1', '127.0.0.1', 'loopback'],
  ['169.254.1.1', '169.254.1.1', 'linkLocal'],
  ['fe80::1%eth0', 'fe80::1', 'linkLocal'],
  ['169.254.169.254', '169.254.169.254', 'metadata'],
  ['::ffff:a9fe:a9fe', '169.254.169.254', 'metadata'],
  ['169.254.170.23', '169.254.170.23', 'metadata'],
  ['192.0.0.192', '192.0.0.192', 'metadata'],
  ['fd00:ec2::254', 'fd00:ec2::254', 'metadata'],
  ['fd00:ec2::23', 'fd00:ec2::23', 'metadata'],
  ['fd20:ce::254', 'fd20:ce::254', 'metadata'],
  ['0.0.0.0', '0.0.0.0', 'unspecified', 'reserved'],
  ['::', '::', 'unspecified', 'reserved'],
  ['::ffff:0.0.0.0', '0.0.0.0', 'unspecified', 'reserved'],
  ['224.0.0.1', '224.0.0.1', 'multicast', 'reserved'],
  ['ff02::1', 'ff02::1', 'multicast', 'reserved'],
  ['::7f00:1', '::7f00:1', 'embedded', 'reserved'],
  ['64:ff9b::7f00:1', '64:ff9b::7f00:1', 'embedded', 'reserved'],
  ['2002:7f00:1::', '2002:7f00:1::', 'embedded', 'reserved'],
  ['192.0.2.1', '192.0.2.1', 'reserved'],
  ['198.51.100.1', '198.51.100.1', 'reserved'],
  ['240.0.0.1', '240.0.0.1', 'reserved'],
  ['2001:db8::1', '2001:db8::1', 'reserved'],
]

const classes = ['public', 'private', 'loopback', 'linkLocal', 'metadata', 'reserved']

/** One rule for each class, so that the rule that decides tells the class; the address itself is compared before. */
const policyOfClass = (value: string) => ({
  name: 'p',
  default: 'Allow',
  rules: [
    ...classes.map(name => ({
      name,
      effect: 'Deny',
      priority: 1,
      conditions: [
        { field: 'input.destinationClass', operator: 'eq', value: name },
        { field: 'input.destinationIp', operator: 'eq', value },
        { field: 'input.destinationIp', operator: 'ipIn', value },
      ],
    })),
  ],
})

t.test('explain, policy test and the data plane see the same address and class', async t => {
  for (const [given, canonical, kind, seen = kind] of table) {
    const rulebook = rulebookOf(policyOfClass(given.split('%')[0] as string))
    const description = { request: { url: 'https://a.example/', destinationIp: given } }
    t.match(explainDescription(rulebook, description, 0), { result: { decision: 'Deny', rule: seen } }, given)
    const expect = { decision: 'Deny', rule: seen } as const
    t.strictSame(runPolicyTest(rulebook, { ...description, name: given, expect }).faults, [], given)
    const live = { ...described(description).head, destination: destinationOf(given) }
    t.match(decideHead(rulebook, live), { decision: 'Deny', rule: seen }, given)
    t.equal(classifyAddress(given), kind, given)
    t.equal(canonicalAddress(given), canonical)
  }
  t.equal(classifyAddress('no address'), 'reserved')
  t.equal(canonicalAddress('no address'), undefined)
})

t.test('a mapped address in a rule, a range or brackets means the IPv4 address', async t => {
  const mapped = AddressRanges.of(
    ['::ffff:10.0.0.0/104', '[::1]', '2001:db8::/32'].map(one => one.replace(/[[\]]/g, '')),
  )
  for (const ip of [
    '10.1.2.3',
    '::ffff:10.1.2.3',
    '::ffff:a01:203',
    '[::ffff:a01:203]',
    '::1',
    '[0::1]',
    '2001:DB8::9',
  ])
    t.ok(mapped.has(ip), ip)
  for (const ip of ['11.0.0.1', '::2', '2001:db9::', 'x', '']) t.notOk(mapped.has(ip), ip)
  t.match(parseRange('::ffff:0:0/96'), { prefix: 0, family: 'ipv4' })
  t.match(parseRange('::/0'), { prefix: 0, family: 'ipv6' })
  t.notOk(AddressRanges.of(['::ffff:0:0/90']).has('fe80::1'))
  t.throws(() => AddressRanges.of(['10.0.0.0/33']), TypeError)
})

t.test('every spelling of an address has one canonical form and one class', async t => {
  fc.assert(
    fc.property(fc.ipV6(), ip => {
      const canonical = canonicalAddress(ip) as string
      const upper = ip.toUpperCase()
      if (canonicalAddress(canonical) !== canonical) throw new Error(`${ip}: ${canonical} is not canonical`)
      if (canonicalAddress(upper) !== canonical) throw new Error(`${ip}: upper case differs`)
      if (classifyAddress(ip) !== classifyAddress(canonical)) throw new Error(`${ip}: another class than ${canonical}`)
    }),
    { numRuns: runs(2_000) },
  )
  t.pass('holds')
})

t.test('a client is counted by its address, or in IPv6 by its /64', async t => {
  t.equal(networkOf('192.0.2.7'), '192.0.2.7')
  t.equal(networkOf('::ffff:192.0.2.7'), '192.0.2.7')
  t.equal(networkOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2')
  t.equal(networkOf('2001:DB8:1:2::1'), '2001:db8:1:2')
  t.equal(networkOf('2001:db8::1'), '2001:db8:0:0')
  t.equal(networkOf('::1'), '0:0:0:0')
  t.equal(networkOf('fe80::1%eth0'), 'fe80:0:0:0')
  t.equal(networkOf(''), '')
  t.equal(networkOf('unix'), 'unix')
})
