/** Threat T05 of SECURITY.md: no spelling of a host passes a rule or a setting that names it. */

import t from 'tap'
import {
  type HostPattern,
  matchesHost,
  normaliseHost,
  parseHostPattern,
  parseHostPatterns,
} from '../../src/base/host.ts'
import { parseTarget } from '../../src/base/target.ts'
import { decideHead } from '../../src/policy/evaluation/decide.ts'
import { createEgress } from '../../src/upstream/egress.ts'
import { described, rulebookOf } from '../fixtures/rulebook.ts'

const matches = (pattern: string, host: string) => matchesHost(parseHostPattern(pattern) as HostPattern, host)

t.test('host patterns: exact, below, or either', async t => {
  t.ok(matches('a.example', 'a.example'))
  t.notOk(matches('a.example', 'b.a.example'))
  t.ok(matches('*.A.example', 'b.a.example'))
  t.notOk(matches('*.a.example', 'a.example'))
  t.notOk(matches('*.a.example', 'xa.example'))
  t.ok(matches('.a.example', 'a.example'))
  t.ok(matches('.a.example', 'b.a.example'))
  t.notOk(matches('.a.example', 'xa.example'))
  for (const wrong of [
    '',
    '.',
    '*',
    '*a.example',
    'a.*.example',
    'a.example:443',
    'a/b',
    'a b',
    'a%2e',
    '*.',
    'foo.0x1',
  ])
    t.equal(parseHostPattern(wrong), undefined, wrong)
  t.throws(() => parseHostPatterns(['a.example', 'a b']), TypeError)
})

const spellings: readonly (readonly [rule: string, host: string])[] = [
  ['A.Example', 'a.example'],
  ['a.example.', 'a.example'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['XN--BCHER-KVA.example', 'xn--bcher-kva.example'],
  ['127.0.0.1', '127.0.0.1'],
  ['127.1', '127.0.0.1'],
  ['0x7f000001', '127.0.0.1'],
  ['0177.0.0.1', '127.0.0.1'],
  ['2130706433', '127.0.0.1'],
  ['[::ffff:127.0.0.1]', '127.0.0.1'],
  ['::ffff:7f00:1', '127.0.0.1'],
  ['::1', '[::1]'],
  ['[0:0:0:0:0:0:0:1]', '[::1]'],
  ['[2001:DB8::0:1]', '[2001:db8::1]'],
]

t.test('a host is denied by a rule or DenyHosts that spells it in another way', async t => {
  for (const [rule, host] of spellings) {
    t.equal(normaliseHost(rule.toLowerCase()), host, rule)
    const target = parseTarget(`https://${host}/`)
    if (typeof target === 'string') throw new TypeError(target)
    const egress = createEgress({
      ...{ DenyPrivateNetworks: false, AllowHosts: [], AllowCidrs: [], DenyCidrs: [], SelfUrls: [] },
      DenyHosts: [rule],
    })
    t.match(egress.checkHost(target.origin), { refusal: 'egress_denied' }, rule)
    for (const operator of ['eq', 'hostMatches']) {
      const value = operator === 'eq' ? rule : [rule]
      const rules = [{ name: 'r', effect: 'Deny', conditions: [{ field: 'input.host', operator, value }] }]
      const { head } = described({ request: { url: `https://${host}/` } })
      t.match(decideHead(rulebookOf({ name: 'p', default: 'Allow', rules }), head), { decision: 'Deny' }, rule)
    }
  }
})

t.test('a host in any spelling but its normal form is not a target', async t => {
  const others = ['127.1', '0x7f.1', '0177.0.0.1', '2130706433', '[::ffff:7f00:1]', '[::ffff:127.0.0.1]', '[0::1]']
  for (const host of [...others, 'a.example.', '[fe80::1%25eth0]', '[::FFFF:7F00:1]', 'a%2eexample', 'xn--a'])
    t.type(parseTarget(`http://${host}/`), 'string', host)
  t.match(parseTarget('http://A.EXAMPLE/'), { origin: { host: 'a.example' } })
})
