import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'

const directory = t.testdir()
execFileSync('openssl', [
  ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
  ...['-keyout', join(directory, 'key.pem'), '-out', join(directory, 'cert.pem')],
  ...['-subj', '/CN=secure.example', '-addext', 'subjectAltName=DNS:secure.example'],
])
const cert = readFileSync(join(directory, 'cert.pem'), 'utf8')

/** An upstream with a certificate for secure.example that no public authority has signed. */
async function startSecure(t: Test) {
  const names: (string | false | null)[] = []
  let requests = 0
  const server = createServer({ cert, key: readFileSync(join(directory, 'key.pem')) }, (req, res) => {
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
  const answer = await gateway.proxy(token, `https://secure.example:${secure.port}/`)
  t.equal(answer.status, 502)
  t.equal(answer.headers.get('gateway-error'), 'upstream_failed')
  t.equal(secure.requests(), 0)
})

t.test('Proxy:CaFile vouches for it, but not for another name or the bare address', async t => {
  const secure = await startSecure(t)
  const gateway = await startGateway(t, { lookup, config: { Proxy: { CaFile: join(directory, 'cert.pem') } } })
  const { token } = await gateway.agent()
  const answer = await gateway.proxy(token, `https://secure.example:${secure.port}/`)
  t.equal(await answer.text(), `secure secure.example:${secure.port}`)
  t.strictSame(secure.names, ['secure.example'], 'the name is asked for, whatever address is dialled')
  for (const host of ['other.example', '127.0.0.1']) {
    t.equal((await gateway.proxy(token, `https://${host}:${secure.port}/`)).status, 502, host)
  }
  t.equal(secure.requests(), 1)
})
