/** `Gateway-Version` is the version of openapi.json. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const { version } = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')).info
const origin = await startOrigin(t, (_req, res) => {
  res.setHeader('Gateway-Version', 'forged')
  res.end('ok')
})
const gateway = await startGateway(t)
const { token } = await gateway.agent()

t.test('answers of the gateway itself carry the version of its API', async t => {
  const answers = [
    await gateway.manage('GET', '/agents'),
    await gateway.manage('GET', '/agents', undefined, null),
    await gateway.manage('GET', '/health', undefined, null),
    await gateway.proxy(token, 'http://169.254.169.254/'),
  ]
  t.strictSame(
    answers.map(({ status, headers }) => [status, headers.get('gateway-version')]),
    [200, 401, 200, 403].map(status => [status, version]),
  )
})

t.test('a request that cannot be read is answered with it, too', async t => {
  const raw = await openRaw(t, gateway.port)
  raw.write('nonsense\r\n\r\n')
  t.match(await raw.closed(), `\r\nGateway-Version: ${version}\r\n`)
})

t.test('a forwarded answer has none, also when the upstream sends one', async t => {
  const forwarded = await gateway.proxy(token, origin.url)
  t.strictSame([forwarded.status, forwarded.headers.get('gateway-version')], [200, null])
})
