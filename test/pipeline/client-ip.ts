import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import t from 'tap'
import { createClientIp, createPeerOf } from '../../src/pipeline/client-ip.ts'

const request = (remoteAddress: string | undefined, ...forwarded: readonly string[]) =>
  ({
    socket: { remoteAddress },
    rawHeaders: forwarded.flatMap(value => ['X-Forwarded-For', value]),
  }) as unknown as IncomingMessage

t.test(
  'T53 what X-Forwarded-For says is believed from trusted proxies only, from the right, as far as they go',
  async t => {
    const clientIp = createClientIp(['10.0.0.0/8'])
    t.equal(clientIp(request('192.0.2.1', '1.1.1.1')), '192.0.2.1')
    t.equal(clientIp(request('10.0.0.1', '6.6.6.6, 1.1.1.1')), '1.1.1.1')
    t.equal(clientIp(request('10.0.0.1', '6.6.6.6', '1.1.1.1, 10.0.0.2')), '1.1.1.1')
    t.equal(clientIp(request('::ffff:10.0.0.1', '1.1.1.1')), '1.1.1.1')
    t.equal(clientIp(request('10.0.0.1', 'nonsense')), '10.0.0.1')
    t.equal(clientIp(request('10.0.0.1')), '10.0.0.1')
    t.equal(clientIp(request(undefined)), '')
    t.equal(createClientIp([])(request('10.0.0.1', '1.1.1.1')), '10.0.0.1')
  },
)

t.test('T32 connections are counted by address, in IPv6 by network, and not for trusted proxies', async t => {
  const peerOf = createPeerOf(['10.0.0.0/8'])
  const peer = (remoteAddress: string | undefined) => peerOf({ remoteAddress } as Socket)
  t.equal(peer('192.0.2.1'), '192.0.2.1')
  t.equal(peer('::ffff:192.0.2.1'), '192.0.2.1')
  t.equal(peer('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2')
  t.equal(peer('2001:db8:1:2::1'), peer('2001:db8:1:2:ffff::2'))
  t.equal(peer('2001:db8::1'), '2001:db8:0:0')
  t.equal(peer('::1'), '0:0:0:0')
  t.equal(peer('fe80::1%eth0'), 'fe80:0:0:0')
  t.equal(peer('10.1.2.3'), undefined)
  t.equal(peer(undefined), undefined, 'gone already')
})
