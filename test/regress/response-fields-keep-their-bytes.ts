/** Heads that left before their body were written as UTF-8, which changed the bytes of fields beyond ASCII. */

import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

for (const [name, bytes] of [
  ['a small answer', 10],
  ['an answer that streams', 500_000],
] as const) {
  t.test(`bytes of the fields of ${name} arrive as they were sent`, async t => {
    const origin = await startOrigin(t, (_req, res) => {
      res.writeHead(200, ['X-Latin', 'caf\xe9', 'X-Utf8', 'caf\xc3\xa9'])
      res.end(Buffer.alloc(bytes))
    })
    const gateway = await startGateway(t)
    const { token } = await gateway.agent()
    const client = await openRaw(t, gateway.port)
    const fields = `Host: g\r\nGateway-Authorization: Bearer ${token}\r\nConnection: close\r\n`
    client.write(`GET /proxy/${origin.url}/ HTTP/1.1\r\n${fields}\r\n`)
    t.match(await client.closed(), /\r\nX-Latin: caf\xe9\r\nX-Utf8: caf\xc3\xa9\r\n/)
  })
}
