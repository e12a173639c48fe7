import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { refuse } from '../../src/base/refusals.ts'
import { sendRefusal } from '../../src/http/respond.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { runToEnd } from '../fixtures/process.ts'
import { testdir } from '../fixtures/testdir.ts'

t.test('health exits with 0 while the gateway of the configuration serves', async t => {
  const gateway = await startGateway(t)
  const env = { SYSTEM__SERVER__HTTP__PORT: String(gateway.port) }
  const { code, out, err } = await runToEnd(t, ['health'], { cwd: gateway.directory, env })
  t.strictSame([code, out, err], [0, 'Healthy\n', ''])
})

t.test('health exits with 1 and the reason when it does not, and asks for what it is told to ask', async t => {
  const stopping = createServer((req, res) => {
    if (req.url === '/health/live') res.end()
    else sendRefusal(res, refuse('draining'), 'id')
  }).listen(0, '127.0.0.1')
  await once(stopping, 'listening')
  t.teardown(() => stopping.close())
  const at = `http://127.0.0.1:${(stopping.address() as AddressInfo).port}`
  const ask = (...args: readonly string[]) => runToEnd(t, ['health', '--at', ...args], { cwd: testdir(t, {}) })
  const [refused, live, absent] = await Promise.all([ask(at), ask(at, '--live'), ask('http://127.0.0.1:1')])
  t.match(refused, { code: 1, out: '', err: `Unhealthy: ${at} answered 503. The gateway is stopping` })
  t.match(live, { code: 0, out: 'Healthy\n' })
  t.match(absent, { code: 1, err: /No gateway answers at http:\/\/127\.0\.0\.1:1 \(ECONNREFUSED\)/ })
})
