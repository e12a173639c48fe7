import { once } from 'node:events'
import { connect } from 'node:http2'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'

const gateway = await startGateway(t)

t.test('a client of HTTP/2 gets 505 on its first stream and GOAWAY with HTTP_1_1_REQUIRED', async t => {
  const session = connect(gateway.url)
  t.teardown(() => session.destroy())
  session.on('error', () => {})
  const gone = once(session, 'goaway')
  const stream = session.request({ ':path': '/health' })
  stream.on('error', () => {})
  const [[head], body] = await Promise.all([once(stream, 'response'), text(stream)])
  t.match(head, { ':status': 505, 'gateway-error': 'http_version_not_supported', 'cache-control': 'no-store' })
  t.match(head, { 'gateway-version': /^\d+\.\d+\.\d+$/ })
  t.match(JSON.parse(body), { status: 505, requestId: head['gateway-request-id'] })
  const [code, , reason] = await gone
  t.equal(code, 0xd)
  t.match(String(reason), /HTTP\/1\.1/)
})
