/** Threats T43, T44 of SECURITY.md. */
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const { call, admin, url } = await startControl(t)

t.test('a change that a foreign page asks for is refused, a reading is not', async t => {
  const body = { name: 'a', ownerId: 'o', clientSecret: 's' }
  const post = (origin: string) => call('POST', '/agents', { token: admin.token, body, headers: { origin } })
  for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1', 'file://', `${url}.evil.example`, ''])
    t.match(await post(origin), { status: 403, json: { code: 'foreign_origin' } }, origin)
  t.match(await post(url), { status: 201 })
  const read = await call('GET', '/agents', { token: admin.token, headers: { origin: 'https://evil.example' } })
  t.equal(read.status, 200)
})

t.test('no page of another origin is let in by headers', async t => {
  const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
  const preflight = await call('OPTIONS', '/agents', { headers })
  t.equal(preflight.status, 405)
  const read = await call('GET', '/agents', { token: admin.token, headers })
  for (const answer of [preflight, read])
    t.notOk([...answer.headers.keys()].some(name => name.startsWith('access-control-')))
})

t.test('with AllowedHosts, a call to another name is refused', async t => {
  const { url } = await startControl(t, { System: { Server: { AllowedHosts: ['Gateway.example', '127.0.0.1'] } } })
  const port = Number(new URL(url).port)
  const statusFor = async (host: string) => {
    const socket = connect(port, '127.0.0.1')
    socket.write(`GET /health HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    return Number((await text(socket)).split(' ')[1])
  }
  t.equal(await statusFor('gateway.example'), 200)
  t.equal(await statusFor('GATEWAY.example:7080'), 200)
  t.equal(await statusFor(`127.0.0.1:${port}`), 200)
  t.equal(await statusFor(''), 403)
  t.equal(await statusFor('rebound.evil.example'), 403)
  t.equal(await statusFor('gateway.example.evil.example'), 403)
  t.equal(await statusFor('evil@gateway.example:x'), 400)
})
