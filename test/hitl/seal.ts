/** Threat T08 of SECURITY.md. */
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import {
  digestOf,
  frameAnswer,
  frameRequest,
  openHeld,
  parseAnswer,
  parseRequest,
  seal,
  sealHeld,
  unseal,
} from '../../src/hitl/seal.ts'

const key = randomBytes(32)
const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index)
const request = {
  method: 'PUT',
  url: 'https://a.example/x?y=%00',
  rawHeaders: ['X-A', '\u00ff\u0080', 'X-A', '', 'x-b', 'c'],
  body: everyByte,
}

t.test('a request comes out of the seal as it went in, every byte of it', async t => {
  const plain = unseal([key], 'request:1', seal(key, 'request:1', frameRequest(request).bytes))
  const { body, ...rest } = parseRequest(plain!)
  t.strictSame(rest, { method: request.method, url: request.url, rawHeaders: request.rawHeaders })
  t.ok(Buffer.from(everyByte).equals(body))
})

t.test('any request comes out as it went in, with the digest it had', async t => {
  const text = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map(code => String.fromCharCode(code)) })
  const requests = fc.record({ method: text, url: text, rawHeaders: fc.array(text), body: fc.uint8Array() })
  fc.assert(
    fc.property(requests, held => {
      const framed = frameRequest(held)
      const plain = unseal([key], 'l', seal(key, 'l', framed.bytes))!
      const opened = parseRequest(plain)
      return (
        digestOf(plain) === framed.digest &&
        JSON.stringify([opened.method, opened.url, opened.rawHeaders]) ===
          JSON.stringify([held.method, held.url, held.rawHeaders]) &&
        Buffer.from(held.body).equals(opened.body)
      )
    }),
  )
  t.pass('holds')
})

t.test('an answer comes out as it went in, with its trailers', async t => {
  const rawHeaders = ['Set-Cookie', 'a', 'Empty', '', 'Set-Cookie', 'b']
  for (const trailers of [[], ['grpc-status', '0', 'grpc-message', '']]) {
    const answer = { status: 207, rawHeaders, body: Buffer.from(everyByte), trailers }
    t.strictSame(parseAnswer(unseal([key], 'l', seal(key, 'l', frameAnswer(answer).bytes))!), answer)
  }
})

t.test('requests that differ anywhere have different digests', async t => {
  const variants = [
    request,
    { ...request, method: 'POST' },
    { ...request, url: `${request.url}0` },
    { ...request, rawHeaders: [...request.rawHeaders, 'd', ''] },
    { ...request, rawHeaders: ['X-A', '\u00ff\u0080X-A', '', 'x-b', 'c', ''] },
    { ...request, rawHeaders: request.rawHeaders.slice(0, 4), body: Buffer.concat([Buffer.from('x-bc'), everyByte]) },
    { ...request, body: everyByte.slice(1) },
  ]
  t.equal(new Set(variants.map(held => frameRequest(held).digest)).size, variants.length)
})

t.test('what was known of a request is sealed with it', async t => {
  const facts = { rawHeaders: ['Host', 'x'], claims: { sub: 'a', '\u00e9': [null] }, clientIp: '::1' }
  const framed = frameRequest(request)
  const sealed = sealHeld(key, '1', { request: framed, facts })
  t.strictSame(openHeld([key], '1', sealed), { request: framed.bytes, facts })
  t.equal(openHeld([key], '2', sealed), undefined)
})

t.test('a copy that was changed anywhere does not open', async t => {
  const sealed = seal(key, 'request:1', Buffer.from('short'))
  for (let index = 0; index < sealed.length; index++) {
    const changed = Buffer.from(sealed)
    changed[index]! ^= 1
    t.equal(unseal([key], 'request:1', changed), undefined, `byte ${index}`)
  }
  for (let length = 0; length < sealed.length; length++) {
    t.equal(unseal([key], 'request:1', sealed.subarray(0, length)), undefined, `cut to ${length}`)
  }
})

t.test('a copy does not open under another key, another id, or as an answer', async t => {
  const sealed = seal(key, 'request:1', Buffer.from('x'))
  t.equal(unseal([randomBytes(32)], 'request:1', sealed), undefined)
  t.equal(unseal([], 'request:1', sealed), undefined)
  t.ok(unseal([randomBytes(32), key], 'request:1', sealed))
  t.equal(unseal([key], 'request:2', sealed), undefined)
  t.equal(unseal([key], 'response:1', sealed), undefined)
  t.strictSame(unseal([key], 'request:1', sealed), Buffer.from('x'))
})

t.test('the same request is never sealed to the same bytes', async t => {
  t.strictNotSame(seal(key, 'l', Buffer.from('x')), seal(key, 'l', Buffer.from('x')))
})

t.test('no nonce is used twice, also when the stock of random bytes runs out', async t => {
  const nonces = Array.from({ length: 2_000 }, () => seal(key, 'l', everyByte).toString('hex', 1, 13))
  t.equal(new Set(nonces).size, nonces.length)
})
