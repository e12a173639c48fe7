/** Clients that have the gateway as their HTTP_PROXY, or forgot `/proxy/`, are told what to call. */

import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { openRaw } from '../fixtures/raw.ts'

const gateway = await startGateway(t)
const named = await startGateway(t, { config: { System: { Server: { AllowedHosts: ['127.0.0.1'] } } } })

async function answerTo(t: Test, line: string, host: string, { port }: TestGateway = gateway): Promise<string> {
  const client = await openRaw(t, port)
  client.write(`${line}\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  return client.closed()
}

const calls = [
  ['HTTP_PROXY', 'GET http://api.example.com/v1/things HTTP/1.1', 'api.example.com', 404],
  ['HTTP_PROXY, with a foreign Host', 'GET http://api.example.com/v1/things HTTP/1.1', 'gateway.test', 400],
  ['HTTPS_PROXY', 'CONNECT api.example.com:443 HTTP/1.1', 'api.example.com:443', 405],
  ['no /proxy/', 'GET /https://api.example.com/v1/things HTTP/1.1', 'gateway.test', 404],
  ['no /proxy/ for a POST', 'POST /v1/chat/completions HTTP/1.1', 'gateway.test', 404],
] as const

for (const [what, line, host, status] of calls) {
  t.test(`${what}: the detail says what to call`, async t => {
    const answer = await answerTo(t, line, host)
    t.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `))
    t.match(answer, /"detail":"[^"]*called as \/proxy\/<URL>/)
  })
}

t.test('a client of HTTP_PROXY whose Host is not allowed is told too', async t => {
  const answer = await answerTo(t, 'GET http://api.example.com/ HTTP/1.1', 'api.example.com', named)
  t.match(answer, /^HTTP\/1\.1 403 .*"code":"foreign_origin".*called as \/proxy\/<URL>/s)
})

t.test('the reason phrase of a tunnel that is refused says it, which is all that clients show', async t => {
  const answer = await answerTo(t, 'CONNECT api.example.com:443 HTTP/1.1', 'api.example.com:443')
  t.match(answer, /^HTTP\/1\.1 405 .*\/proxy\/<URL>\r\n/)
})
