/** Threat T42 of SECURITY.md. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { startGateway } from '../fixtures/gateway.ts'

/** A certificate for idp.test that no public authority has signed. */
const certFile = fileURLToPath(new URL('../fixtures/tls/cert.pem', import.meta.url))
const cert = readFileSync(certFile, 'utf8')
const key = readFileSync(new URL('../fixtures/tls/key.pem', import.meta.url), 'utf8')

async function startSecure(t: Test) {
  const names: (string | false | null)[] = []
  let requests = 0
  const server = createServer({ cert, key }, (req, res) => {
    requests += 1
    res.end(`secure ${req.headers.host}`)
  })
  server.on('secureConnection', socket => names.push(socket.servername))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return { port: (server.address() as AddressInfo).port, names, requests: () => requests }
}

const lookup = async () => ['127.0.0.1']

t.test('a certificate that nobody vouches for is 502, and the upstream sees no request', async t => {
  const secure = await startSecure(t)
  const gateway = await startGateway(t, { lookup })
  const { token } = await gateway.agent()
  const answer = await gateway.proxy(token, `https://idp.test:${secure.port}/`)
  t.equal(answer.status, 502)
  t.equal(answer.headers.get('gateway-error'), 'upstream_failed')
  t.equal(secure.requests(), 0)
})

t.test('Proxy:CaFile vouches for it, but not for another name or the bare address', async t => {
  const secure = await startSecure(t)
  const gateway = await startGateway(t, { lookup, config: { Proxy: { CaFile: certFile } } })
  const { token } = await gateway.agent()
  const answer = await gateway.proxy(token, `https://idp.test:${secure.port}/`)
  t.equal(await answer.text(), `secure idp.test:${secure.port}`)
  t.strictSame(secure.names, ['idp.test'], 'the name is asked for, whatever address is dialled')
  for (const host of ['other.example', '127.0.0.1']) {
    t.equal((await gateway.proxy(token, `https://${host}:${secure.port}/`)).status, 502, host)
  }
  t.equal(secure.requests(), 1)
})
