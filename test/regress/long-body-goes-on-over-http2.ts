/** A body that was held up to the limit stood still: nobody let it go on, and the upstream waited for it. */

import t from 'tap'
import { startHttp2Gateway } from '../fixtures/gateway-http2.ts'
import { startHttp2 } from '../fixtures/origin-http2.ts'

t.test('a body that was longer than is decided on is sent whole, also over HTTP/2', async t => {
  const origin = await startHttp2(t, stream => {
    stream.on('end', () => {
      stream.respond({ ':status': 200 })
      stream.end('taken')
    })
  })
  const config = { Policy: { Mode: 'observe' } }
  const { gateway } = await startHttp2Gateway(t, { MaxEvaluatedBodyBytes: 1_024, HeadersTimeoutSeconds: 5 }, { config })
  const conditions = [{ field: 'input.body.kind', operator: 'eq', value: 'bad' }]
  await gateway.policy({ name: 'reads', default: 'Allow', rules: [{ name: 'bad', effect: 'Deny', conditions }] })
  const { token } = await gateway.agent({ policyName: 'reads' })
  const headers = { 'Content-Type': 'application/json' }
  const body = JSON.stringify({ kind: 'good', text: 'x'.repeat(300_000) })
  const answer = await gateway.proxy(token, origin.url, { method: 'POST', headers, body })
  t.strictSame([answer.status, await answer.text()], [200, 'taken'])
  t.equal(origin.seen[0]?.bytes, body.length)
})
