/** The vectors of RFC 8291 appendix A and RFC 8292 section 2.4. Threat T86. */
import { createECDH, generateKeyPairSync } from 'node:crypto'
import { importJWK, jwtVerify } from 'jose'
import t from 'tap'
import { areBrowserKeys, encryptPush } from '../../../src/hitl/push/encrypt.ts'
import { vapidOf } from '../../../src/hitl/push/vapid.ts'

const keys = {
  p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
  auth: 'BTBZMqHH6r4Tts7J_aSIgg',
}

t.test('a push is encrypted as RFC 8291 shows', t => {
  const ecdh = createECDH('prime256v1')
  ecdh.setPrivateKey('yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw', 'base64url')
  const salt = Buffer.from('DGv6ra1nlYgDCS1FRnbzlw', 'base64url')
  const sealed = encryptPush(Buffer.from('When I grow up, I want to be a watermelon'), keys, { ecdh, salt })
  t.equal(
    sealed.toString('base64url'),
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_' +
      'yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
  )
  const twice = [1, 2].map(() => encryptPush(Buffer.from('x'), keys).toString('base64url'))
  t.equal(new Set(twice).size, 2, 'each has a key of its own')
  t.end()
})

t.test('keys that no browser gives are refused', async t => {
  t.ok(areBrowserKeys(keys))
  t.notOk(areBrowserKeys({ ...keys, auth: 'BTBZMqHH6r4Tts7J_aSI' }))
  t.notOk(areBrowserKeys({ ...keys, p256dh: `${keys.p256dh.slice(0, -1)}A` }), 'a point beside the curve')
  t.notOk(areBrowserKeys({ ...keys, p256dh: '' }))
})

const example = {
  token:
    'eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3NjgsInN1YiI6Im1haWx0' +
    'bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSSHzvoD1oA',
  key: 'BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs',
}
const currentDate = new Date(1_453_523_000_000)

async function verified(token: string, key: string) {
  const point = Buffer.from(key, 'base64url')
  const [x, y] = [point.subarray(1, 33).toString('base64url'), point.subarray(33).toString('base64url')]
  const jwk = await importJWK({ kty: 'EC', crv: 'P-256', x, y }, 'ES256')
  return (await jwtVerify(token, jwk, { currentDate })).payload
}

t.test('the gateway says who it is as RFC 8292 shows', async t => {
  const now = 1_453_523_768_000 - 12 * 3_600_000
  const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
  const { publicKey, authorization } = vapidOf(jwk, {
    ...{ clock: { now: () => now }, contact: 'mailto:push@example.com' },
  })
  const field = authorization('https://push.example.net/p/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV')
  const [, token = '', key = ''] = /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(field) ?? []
  t.equal(key, publicKey)
  const signed = (text: string) => text.split('.').slice(0, 2)
  t.strictSame(signed(token), signed(example.token), 'head and claims, byte for byte')
  t.strictSame(await verified(token, key), await verified(example.token, example.key))
})
