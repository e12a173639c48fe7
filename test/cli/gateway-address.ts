import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { addressOf, callJson, connectTo, findForwardProxy, findGateway } from '../../src/cli/gateway-address.ts'
import { testConfig } from '../fixtures/gateway.ts'
import { testdir } from '../fixtures/testdir.ts'

const configuration = (settings: object) => ({
  ...{ config: testConfig({ ...settings }), baseDirectory: testdir(t), given: new Map(), file: undefined },
})
const http = (Http: object) => configuration({ System: { Server: { Http } } })

t.test('the configured address is used from the same machine, unless another one is given', async t => {
  const own = http({ Host: '0.0.0.0', Port: 7_000 })
  t.match(await findGateway(own, undefined), {
    name: 'http://127.0.0.1:7000',
    options: { host: '127.0.0.1', port: '7000' },
  })
  t.match(await findGateway(http({ Host: '::', Port: 7_000 }), undefined), { options: { host: '::1' } })
  t.match(await findGateway(own, 'http://[::1]'), { secure: false, options: { host: '::1', port: 80 } })
  t.match(await findGateway(own, 'https://gateway.test'), {
    secure: true,
    options: { host: 'gateway.test', port: 443 },
  })
  t.match(await findGateway(own, 'unix:/run/a.sock'), { options: { socketPath: '/run/a.sock' } })
  for (const wrong of ['gateway:7000', 'here'])
    await t.rejects(findGateway(own, wrong), { message: /is not an address/ })
})

t.test('endpoints have a scheme by their certificate, and a passed socket has no address', async t => {
  const plain = testConfig()
  t.equal(addressOf({ path: '/run/a.sock', mode: 0o600, setting: '' }, plain), 'unix:/run/a.sock')
  t.throws(() => addressOf({ fd: 3 }, plain), { message: /passed socket/ })
  const Tls = { CertificateFile: 'c.pem', KeyFile: 'k.pem' }
  const { config } = configuration({ System: { Server: { Tls } } })
  t.equal(addressOf({ host: 'a.test', port: 1, setting: '' }, config), 'https://a.test:1')
  t.equal(addressOf({ host: '::', port: 1, isPlain: true, setting: '' }, config), 'http://[::1]:1')
})

t.test('the forward proxy is where the configuration says, and its absence is told', async t => {
  const of = (ForwardProxy: object, at?: string) => findForwardProxy(configuration({ ForwardProxy }), at)
  t.match(await of({ Enabled: true, Port: 7_001 }), { name: 'http://127.0.0.1:7001' })
  t.match(await of({ Enabled: true, Port: 0, UnixPath: '/run/f.sock' }), { name: 'unix:/run/f.sock' })
  t.match(await of({}, 'http://127.0.0.1:9'), { name: 'http://127.0.0.1:9' })
  await t.rejects(of({}), { message: /^ForwardProxy:Enabled is false in gateway\.yaml\..* with --proxy\.$/ })
  await t.rejects(of({ Enabled: true, Port: 0 }), { message: /with --proxy/ })
})

t.test('a call has the token and the body that are given, and names an address where nobody answers', async t => {
  const server = createServer((req, res) => {
    if (req.url === '/silent') return
    const { authorization, 'content-type': type } = req.headers
    res.end(JSON.stringify({ authorization, type }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const gateway = await findGateway(http({}), `http://127.0.0.1:${port}`)
  const said = async (more: object) =>
    JSON.parse((await callJson(gateway, { method: 'POST', path: '/', ...more })).text)
  t.strictSame(await said({}), {})
  t.strictSame(await said({ body: {}, token: 'k' }), { authorization: 'Bearer k', type: 'application/json' })
  const nobody = await findGateway(http({}), `unix:${testdir(t)}/none.sock`)
  await t.rejects(callJson(nobody, { method: 'GET', path: '/' }), { message: /^No gateway answers .*\(ENOENT\)/ })
  const silent = callJson(gateway, { method: 'GET', path: '/silent', withinMs: 1 })
  await t.rejects(silent, { message: /^No gateway answers .*\(ABORT_ERR\)/ })
  const socket = connectTo(gateway, () => socket.end('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'))
  let answered = ''
  for await (const chunk of socket) answered += chunk
  t.match(answered, /^HTTP\/1\.1 200 /)
})
