/** Clients that have the gateway as their HTTP_PROXY, or forgot `/proxy/`, are told what to call. */

import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { openRaw } from '../fixtures/raw.ts'

const gateway = await startGateway(t)
const PublicUrl = 'https://agents.example'
/** Calls of the gateway's own are passed on to the first of its threads. */
const threads = await startGateway(t, { config: { System: { Server: { Threads: 2 } } } })
const fronted = await startGateway(t, {
  config: { System: { PublicUrl }, Egress: { SelfUrls: ['https://people.example'] } },
})
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

t.test('a URL of another host is not answered with what the gateway has under its path', async t => {
  for (const path of ['/health', '/health/proxy', '/', '/console/', '/open-api', '/tokens', '/metrics']) {
    for (const host of [
      'api.example.com',
      'api.example.com:80',
      '10.0.0.1',
      `10.0.0.1:${gateway.port}`,
      '127.0.0.1:1',
    ]) {
      const answer = await answerTo(t, `GET http://${host}${path} HTTP/1.1`, host)
      t.match(answer, /^HTTP\/1\.1 404 .*"code":"not_found".*called as \/proxy\/<URL>/s, `${host}${path}`)
    }
  }
})

t.test('a URL of the gateway itself is, and so is a path under any name', async t => {
  const { port } = fronted
  for (const host of [
    `127.0.0.1:${port}`,
    `localhost:${port}`,
    `LOCALHOST:${port}`,
    `[::1]:${port}`,
    'agents.example',
    'people.example:8443',
  ]) {
    const scheme = host.includes('example') ? 'https' : 'http'
    t.match(await answerTo(t, `GET ${scheme}://${host}/health HTTP/1.1`, host, fronted), /^HTTP\/1\.1 200 /, host)
  }
  for (let time = 0; time < 20; time++) {
    const host = `127.0.0.1:${threads.port}`
    t.match(await answerTo(t, `GET http://${host}/health HTTP/1.1`, host, threads), /^HTTP\/1\.1 200 /)
    t.match(await answerTo(t, 'GET http://127.0.0.1:1/health HTTP/1.1', '127.0.0.1:1', threads), /^HTTP\/1\.1 404 /)
  }
  for (const host of ['anything.example', '127.0.0.1']) {
    t.match(await answerTo(t, 'GET /health HTTP/1.1', host), /^HTTP\/1\.1 200 /, host)
  }
  const answer = await answerTo(t, 'GET http://gateway.test/proxy/http://127.0.0.1:9/ HTTP/1.1', 'gateway.test')
  t.match(answer, /^HTTP\/1\.1 401 /, 'what is behind /proxy/ is a call of the gateway under any name')
})

t.test('a client of HTTP_PROXY whose Host is not allowed gets the reason too', async t => {
  const answer = await answerTo(t, 'GET http://api.example.com/ HTTP/1.1', 'api.example.com', named)
  t.match(answer, /^HTTP\/1\.1 403 .*"code":"foreign_origin".*called as \/proxy\/<URL>/s)
})

t.test('the reason phrase of a tunnel that is refused says it, which is all that clients show', async t => {
  const answer = await answerTo(t, 'CONNECT api.example.com:443 HTTP/1.1', 'api.example.com:443')
  t.match(answer, /^HTTP\/1\.1 405 .*\/proxy\/<URL>\r\n/)
})
