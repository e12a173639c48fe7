/** Threat T03 of SECURITY.md. */
import { networkInterfaces } from 'node:os'
import t from 'tap'
import { createOrigin } from '../../src/base/origin.ts'
import { createEgress, type EgressSettings } from '../../src/upstream/egress.ts'

const open: EgressSettings = {
  DenyPrivateNetworks: false,
  AllowHosts: [],
  DenyHosts: [],
  AllowCidrs: [],
  DenyCidrs: [],
  SelfUrls: [],
}
const origin = createOrigin('http', 'a.example', 80)
const refused = { refusal: 'egress_denied', status: 403 }

t.test('addresses that no setting but AllowCidrs opens', async t => {
  const egress = createEgress(open)
  const always = [
    '169.254.169.254',
    '169.254.1.1',
    '168.63.129.16',
    '100.100.100.200',
    'fd00:ec2::254',
    'fe80::1',
    '0.0.0.0',
    '::',
    '::ffff:0.0.0.0',
    '::ffff:a9fe:a9fe',
    '224.0.0.1',
    '255.255.255.255',
    'ff02::1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '2001:0:7f00:1::',
    '::7f00:1',
    '::ffff:0:a9fe:a9fe',
    'no address',
    '192.0.2.1',
  ]
  for (const ip of always) t.match(egress.checkAddresses(origin, [ip]), refused, ip)
  const exempt = createEgress({ ...open, AllowCidrs: ['169.254.169.254/32'] })
  t.equal(exempt.checkAddresses(origin, ['169.254.169.254']), undefined)
  t.match(exempt.checkAddresses(origin, ['169.254.169.253']), refused)
})

t.test('private and loopback addresses are refused when the setting says so', async t => {
  const strict = createEgress({ ...open, DenyPrivateNetworks: true, AllowCidrs: ['10.1.0.0/16'] })
  for (const ip of [
    '127.0.0.1',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.0.1',
    '100.64.0.1',
    'fc00::1',
    '::1',
    '::ffff:10.0.0.1',
  ]) {
    t.match(strict.checkAddresses(origin, [ip]), refused, ip)
    t.equal(createEgress(open).checkAddresses(origin, [ip]), undefined, `${ip} without the setting`)
  }
  t.equal(strict.checkAddresses(origin, ['10.1.2.3']), undefined, 'an allowed range is an exception')
})

t.test('public addresses pass, also those next to a refused range', async t => {
  const egress = createEgress({ ...open, DenyPrivateNetworks: true })
  for (const ip of ['8.8.8.8', '172.32.0.1', '100.63.255.254', '126.255.255.255', '169.253.255.255', '2606:4700::1']) {
    t.equal(egress.checkAddresses(origin, [ip]), undefined, ip)
  }
})

t.test('one refused address among several refuses them all', async t => {
  t.match(createEgress(open).checkAddresses(origin, ['8.8.8.8', '169.254.169.254']), refused)
})

t.test('DenyCidrs is stronger than AllowCidrs', async t => {
  const egress = createEgress({ ...open, AllowCidrs: ['10.0.0.0/8'], DenyCidrs: ['10.1.0.0/16'] })
  t.match(egress.checkAddresses(origin, ['10.1.0.1']), refused)
  t.equal(egress.checkAddresses(origin, ['10.2.0.1']), undefined)
})

t.test('the gateway itself is refused by any address of this machine, on its own port only', async t => {
  const egress = createEgress({ ...open, AllowCidrs: ['0.0.0.0/0', '::/0'] })
  egress.setListeners([7080])
  const own = Object.values(networkInterfaces()).flatMap(list => list?.map(entry => entry.address) ?? [])
  for (const ip of [...own, '127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1', '0.0.0.0']) {
    t.match(egress.checkAddresses(createOrigin('http', 'me.example', 7080), [ip]), refused, ip)
  }
  t.equal(egress.checkAddresses(createOrigin('http', 'me.example', 7081), ['127.0.0.1']), undefined)
})

t.test('another gateway is refused at its address, and by any address of this machine when it runs here', async t => {
  const egress = createEgress({ ...open, AllowCidrs: ['0.0.0.0/0', '::/0'] })
  egress.setPeers(['https://192.0.2.7:8443', 'http://[2001:db8::7]:7080', 'http://127.0.0.1:7090', 'odd', 'http://x/'])
  const check = (ip: string, port: number) => egress.checkAddresses(createOrigin('http', 'a.example', port), [ip])
  for (const ip of ['192.0.2.7', '::ffff:192.0.2.7']) t.match(check(ip, 8443), refused, ip)
  t.match(check('2001:db8:0::7', 7080), refused)
  for (const ip of ['127.0.0.1', '::1', '0.0.0.0']) t.match(check(ip, 7090), refused, ip)
  t.equal(check('192.0.2.7', 8444), undefined)
  t.equal(check('192.0.2.8', 8443), undefined)
  t.equal(check('127.0.0.1', 8443), undefined)
  egress.setPeers([])
  t.equal(check('192.0.2.7', 8443), undefined, 'it is gone')
})

t.test('hosts: denied, allowed alone, metadata names, and own URLs', async t => {
  const egress = createEgress({
    ...open,
    AllowHosts: ['*.example', 'metadata.google.internal'],
    DenyHosts: ['bad.a.example'],
    SelfUrls: ['https://gateway.example'],
  })
  const check = (host: string, scheme: 'http' | 'https' = 'https') =>
    egress.checkHost(createOrigin(scheme, host, scheme === 'https' ? 443 : 80))
  t.equal(check('a.example'), undefined)
  t.match(check('bad.a.example'), refused)
  t.match(check('a.test'), refused)
  t.match(check('metadata.google.internal'), refused)
  t.match(check('gateway.example'), refused)
  for (const name of ['bad.a.example', 'gateway.example']) t.equal(egress.mayFind(name), false, name)
  t.ok(egress.mayFind('api.not-in-allow-hosts.test'), 'the name that the agent wrote is the one to allow')
  egress.prepare({ ...open, DenyHosts: ['*.cluster.local'] })()
  t.equal(egress.mayFind('vault.security.svc.cluster.local'), false)
  t.ok(egress.mayFind('bad.a.example'))
})
