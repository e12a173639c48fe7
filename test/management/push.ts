import { hash } from 'node:crypto'
import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const on = {
  System: { PublicUrl: 'https://gateway.example' },
  HumanInTheLoop: { Push: { Enabled: true } },
}
const { call, person } = await startControl(t, on)
const endpoint = 'https://fcm.googleapis.com/fcm/send/example'
const keys = {
  p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
  auth: 'BTBZMqHH6r4Tts7J_aSIgg',
}
const path = `/console/push/${hash('sha256', endpoint, 'base64url')}`

t.test('a reviewer switches pushes to a browser on and off', async t => {
  const { token } = await person('reviewer')
  const { status, json } = await call('GET', '/console/push', { token })
  t.equal(status, 200)
  t.match(json.publicKey, /^B[\w-]{86}$/)
  t.match(await call('PUT', '/console/push', { token, body: { endpoint, keys } }), { status: 200 })
  const other = await person('reviewer')
  t.match(await call('DELETE', path, { token: other.token }), { status: 404 })
  t.match(await call('DELETE', path, { token }), { status: 200 })
  t.match(await call('DELETE', path, { token }), { status: 404 })
})

t.test('T86 others, and addresses that are no push service, are refused', async t => {
  const { token } = await person('reviewer')
  const agent = await person('agent')
  const body = { endpoint, keys }
  t.match(await call('PUT', '/console/push', { token: agent.token, body }), { status: 403 })
  for (const wrong of [
    { endpoint: 'http://127.0.0.1/', keys },
    { endpoint, keys: { ...keys, auth: 'x' } },
    { endpoint },
  ]) {
    t.match(await call('PUT', '/console/push', { token, body: wrong }), { status: 400 }, JSON.stringify(wrong))
  }
  t.match(await call('DELETE', '/console/push/short', { token }), { status: 404 })
})

t.test('an admin sends a test push to all browsers; nobody has one', async t => {
  const [admin, reviewer] = [await person('admin'), await person('reviewer')]
  t.match(await call('POST', '/console/push-test', { token: admin.token }), { status: 200, json: { services: [] } })
  t.match(await call('POST', '/console/push-test', { token: reviewer.token }), { status: 403 })
})

t.test('without Web Push nothing about it is served', async t => {
  const off = await startControl(t)
  const { token } = await off.person('reviewer')
  const body = { endpoint, keys }
  for (const [method, at, more] of [
    ['GET', '/console/push', {}],
    ['PUT', '/console/push', { body }],
    ['DELETE', path, {}],
  ] as const) {
    t.match(await off.call(method, at, { token, ...more }), { status: 409, json: { code: 'wrong_state' } })
  }
  const admin = await off.person('admin')
  t.match(await off.call('POST', '/console/push-test', { token: admin.token }), { status: 409 })
})
