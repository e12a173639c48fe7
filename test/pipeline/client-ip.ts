import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { markUnixPeers } from '../../src/http/unix-socket.ts'
import { createClientIp, createPeerOf } from '../../src/pipeline/client-ip.ts'
import { testdir } from '../fixtures/testdir.ts'

const request = (remoteAddress: string | undefined, ...forwarded: readonly string[]) =>
  [{ remoteAddress } as Socket, forwarded.flatMap(value => ['X-Forwarded-For', value])] as const

t.test(
  'T53 what X-Forwarded-For says is believed from trusted proxies only, from the right, as far as they go',
  async t => {
    const clientIp = createClientIp(['10.0.0.0/8'])
    t.equal(clientIp(...request('192.0.2.1', '1.1.1.1')), '192.0.2.1')
    t.equal(clientIp(...request('10.0.0.1', '6.6.6.6, 1.1.1.1')), '1.1.1.1')
    t.equal(clientIp(...request('10.0.0.1', '6.6.6.6', '1.1.1.1, 10.0.0.2')), '1.1.1.1')
    t.equal(clientIp(...request('::ffff:10.0.0.1', '1.1.1.1')), '1.1.1.1')
    t.equal(clientIp(...request('10.0.0.1', 'nonsense')), '10.0.0.1')
    t.equal(clientIp(...request('10.0.0.1')), '10.0.0.1')
    t.equal(clientIp(...request(undefined)), '')
    t.equal(createClientIp([])(...request('10.0.0.1', '1.1.1.1')), '10.0.0.1')
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

t.test('clients over a unix socket are one peer, and trusted as a proxy only when unix is', async t => {
  const server = createServer().listen(join(testdir(t), 's'))
  markUnixPeers(server)
  const path = server.address() as string
  const client = connect(path)
  const [socket] = (await once(server, 'connection')) as [Socket]
  t.teardown(() => {
    client.destroy()
    socket.destroy()
    server.close()
  })
  const req = [socket, ['X-Forwarded-For', '192.0.2.7']] as const
  t.equal(createPeerOf(['127.0.0.1'])(socket), 'unix')
  t.equal(createPeerOf(['10.0.0.0/8', 'Unix'])(socket), undefined)
  t.equal(createClientIp([])(...req), 'unix')
  t.equal(createClientIp(['0.0.0.0/0', '::/0'])(...req), 'unix')
  t.equal(createClientIp(['unix'])(...req), '192.0.2.7')
})
