/** Threats T20, T22 of SECURITY.md. */

import t, { type Test } from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const gateway = await startGateway(t)
const { token } = await gateway.agent()
const origin = await startOrigin(t)
const last = 'GET /health HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n'

/** Sends one head to the proxy and a sound request behind it; gives the answers. */
async function send(t: Test, version: string, lines = ''): Promise<string> {
  const raw = await openRaw(t, gateway.port)
  const head = `GET /proxy/${origin.url}/${version}\r\nHost: gateway\r\nGateway-Authorization: Bearer ${token}\r\n`
  raw.write(`${head}${lines}\r\n${last}`)
  return raw.closed()
}

t.beforeEach(() => {
  origin.seen.length = 0
})

t.test('a version other than 1.0 and 1.1 is refused, and nothing behind it is read', async t => {
  const refused = ['', ' ', ' HTTP/0.9', ' HTTP/1.2', ' HTTP/1.10', ' HTTP/01.1', ' HTTP/2.0', ' HTTP/2', ' http/1.1']
  for (const version of refused) {
    const text = await send(t, version)
    t.match(text, /^HTTP\/1\.1 (?:400|505) /, version)
    t.match(text, /^gateway-error: (?:http_version_not_supported|invalid_request)\r$/im, version)
    t.equal(text.match(/^HTTP\/1\.1 /gm)?.length, 1, `${version}: one answer`)
  }
  t.strictSame(origin.seen, [])
})

t.test('the versions that the parser takes are 505', async t => {
  for (const version of ['', ' HTTP/0.9', ' HTTP/2.0']) t.match(await send(t, version), /^HTTP\/1\.1 505 /, version)
})

t.test('1.0 and 1.1 are served', async t => {
  for (const version of [' HTTP/1.0', ' HTTP/1.1']) t.match(await send(t, version), /^HTTP\/1\.1 200 /, version)
  t.equal(origin.seen.length, 2)
})

t.test(
  "the parser of Node takes RTSP for HTTP: framing is HTTP's, and what leaves is HTTP/1.1 in our own words",
  async t => {
    for (const version of [' RTSP/1.0', ' RTSP/1.1']) {
      const text = await send(t, version)
      t.match(text, /^HTTP\/1\.1 200 /, version)
    }
    for (const version of [' RTSP/2.0', ' RTSP/0.9', ' ICE/1.0', ' FTP/1.1', ' RTSPHTTP/1.1']) {
      t.match(await send(t, version), /^HTTP\/1\.1 (?:400|505) /, version)
    }
    t.strictSame(
      origin.seen.map(({ rawHeaders }) => rawHeaders[rawHeaders.indexOf('Via') + 1]),
      ['1.0 agent-gateway', '1.1 agent-gateway'],
    )
    // A body is framed by the same rules, and both announced lengths at once are refused.
    const both = await send(t, ' RTSP/1.0', 'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n')
    t.match(both, /^HTTP\/1\.1 400 /)
  },
)

t.test('the management API serves the same versions', async t => {
  const raw = await openRaw(t, gateway.port)
  raw.write('GET /health HTTP/2.0\r\nHost: gateway\r\n\r\n')
  t.match(await raw.closed(), /^HTTP\/1\.1 505 /)
})

t.test('a header name that folds to a framing or gateway field is refused', async t => {
  const names = [
    'Transfer_Encoding',
    'Transfer---Encoding',
    'Transfer.Encoding',
    'Content_Length',
    'Content.Length',
    'CONTENT_LENGTH',
    'Host_',
    '_Host',
    'Connection~',
    'Gateway_Authorization',
    'Gateway.Authorization',
    'Gateway--Authorization',
    'Gateway_Hitl_Id',
  ]
  for (const name of names) {
    const text = await send(t, ' HTTP/1.1', `${name}: 5\r\n`)
    t.match(text, /^HTTP\/1\.1 400 /, name)
    t.match(text, /^gateway-error: invalid_request\r$/im, name)
    t.equal(text.match(/^HTTP\/1\.1 /gm)?.length, 1, `${name}: one answer`)
  }
  t.strictSame(origin.seen, [])
})

t.test('other names with underscores and dots pass', async t => {
  t.match(await send(t, ' HTTP/1.1', 'X_Request_Id: 5\r\nX.Y: 6\r\n'), /^HTTP\/1\.1 200 /)
  t.match(origin.seen[0]?.headers, { x_request_id: '5', 'x.y': '6' })
})
