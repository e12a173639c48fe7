import fc from 'fast-check'
import t from 'tap'
import { canonicalAddress } from '../../src/base/address.ts'
import { addressBytes, rangeBytes, rangeText } from '../../src/intercept/address-bytes.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

t.test('addresses have 4 or 16 bytes', async t => {
  t.equal(hex(addressBytes('127.0.0.1')), '7f000001')
  t.equal(hex(addressBytes('::')), '0'.repeat(32))
  t.equal(hex(addressBytes('::1')), `${'0'.repeat(31)}1`)
  t.equal(hex(addressBytes('2001:db8::10:0:1')), '20010db8000000000000001000000001')
  t.equal(hex(addressBytes('64:ff9b::1.2.3.4')), '0064ff9b000000000000000001020304')
  t.equal(hex(addressBytes('1:2:3:4:5:6:7:8')), '00010002000300040005000600070008')
})

t.test('any IPv6 address is read from its bytes as it was', async t => {
  const sameAddress = fc.property(fc.ipV6(), address => {
    const groups = hex(addressBytes(address)).match(/.{4}/g)!.join(':')
    return new URL(`http://[${groups}]`).hostname === new URL(`http://[${address}]`).hostname
  })
  t.doesNotThrow(() => fc.assert(sameAddress))
})

t.test('a range has its first address and its mask', async t => {
  t.equal(hex(rangeBytes('10.1.2.3/8')), '0a000000ff000000')
  t.equal(hex(rangeBytes('0.0.0.0/0')), '0'.repeat(16))
  t.equal(hex(rangeBytes('192.0.2.128/25')), 'c0000280ffffff80')
  t.equal(hex(rangeBytes('fd00::/8')), `fd${'0'.repeat(30)}ff${'0'.repeat(30)}`)
  t.throws(() => rangeBytes('example.com'), TypeError)
})

t.test('any range is read from its bytes as it was', async t => {
  for (const range of ['10.0.0.0/8', '0.0.0.0/0', '192.0.2.1/32']) t.equal(rangeText(rangeBytes(range)), range)
  for (const range of ['fd00::/8', '::/0', '2001:db8::1/128']) {
    const [address, prefix] = rangeText(rangeBytes(range)).split('/')
    t.equal(`${canonicalAddress(address!)}/${prefix}`, range)
  }
})

t.test('a mask with gaps is that of one address', async t => {
  t.equal(rangeText(Buffer.from('0a000000ff00ff00', 'hex')), '10.0.0.0/32')
})
