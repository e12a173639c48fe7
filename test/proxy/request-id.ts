/** Every answer names its request, and the log line has the same name for it. */

import t from 'tap'
import { gatewayThreads, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const field = 'gateway-request-id'

for (const threads of new Set([gatewayThreads, 2])) {
  t.test(`forwarded, refused and own answers carry the id of the log line, ${threads} threads`, async t => {
    const origin = await startOrigin(t, (_req, res) => {
      res.setHeader('Gateway-Request-Id', 'from upstream')
      res.end('ok')
    })
    const gateway = await startGateway(t, { config: { System: { Server: { Threads: threads } } } })
    const { token } = await gateway.agent()
    const forwarded = await gateway.proxy(token, origin.url)
    const refused = await gateway.proxy(token, 'http://169.254.169.254/')
    const lines = await gateway.exchanges(2)
    const ids = [forwarded, refused].map(answer => answer.headers.get(field))
    t.strictSame(ids.toSorted(), lines.map(line => line.requestId).toSorted())
    for (const line of lines) t.equal(line.clientIp, '127.0.0.1')
    t.match((await gateway.manage('GET', '/agents')).headers.get(field), /^[\w-]{10,40}$/)
    t.match((await gateway.manage('GET', '/agents', undefined, null)).headers.get(field), /^[\w-]{10,40}$/)
    const raw = await openRaw(t, gateway.port)
    raw.write('nonsense\r\n\r\n')
    t.match(await raw.closed(), /\r\nGateway-Request-Id: [\w-]{10,40}\r\n/)
  })
}
