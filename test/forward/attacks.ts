/** What /proxy/ refuses of destinations and tokens is refused by the forward proxy, in tunnels too. Threats T02, T03, T05, T09, T42. */
import t, { type Test } from 'tap'
import { basic, connectBytes, startForward } from '../fixtures/forward.ts'
import { merge } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { codesOf, namesOfThisMachine, refusalOf, ssrfHosts, ssrfUrls } from '../fixtures/ssrf-targets.ts'

const origin = await startOrigin(t)
const limits = {
  RateLimit: { RequestsPerMinute: 1_000_000, Burst: 10_000 },
  CircuitBreaker: { Failures: 10_000 },
}

/** Status and code of the last answer in a text. */
function outcomeOf(text: string) {
  const last = text.slice(text.lastIndexOf('HTTP/1.1 '))
  return { status: Number(last.slice(9, 12)), code: /^gateway-error: (\S+)/im.exec(last)?.[1] ?? '' }
}

for (const threads of [1, 2]) {
  t.test(`with ${threads} thread(s)`, async t => {
    const gateway = await startForward(t, {
      config: { Trust: { QuarantineDenials: 0 }, System: merge(limits, { Server: { Threads: threads } }) },
      lookup: async name => namesOfThisMachine[name] ?? [],
    })
    const { token } = await gateway.agent()
    const authorization = `Bearer ${token}`
    const proxied = (line: string, credential = `Proxy-Authorization: ${authorization}\r\n`) =>
      `${line} HTTP/1.1\r\nHost: g\r\n${credential}Connection: close\r\n\r\n`
    const inTunnel = (authority: string) =>
      `${connectBytes({ to: authority, authorization })}GET / HTTP/1.1\r\nHost: ${authority}\r\nConnection: close\r\n\r\n`
    const sends = (t: Test, text: string) => gateway.exchange(t, text).then(outcomeOf)

    t.test('T02 T03 no spelling of a forbidden host is reached', async t => {
      const canary = origin.connections()
      const ways = [
        [gateway.port, proxied],
        [gateway.forwardPort, inTunnel],
        [origin.port, inTunnel],
      ] as const
      const passed: string[] = []
      for (const [port, way] of ways) {
        for (const row of ssrfHosts) {
          const expected = refusalOf(row, false, port !== origin.port)
          if (expected === undefined) continue
          const authority = `${row.host}:${port}`
          const { status, code } = await sends(
            t,
            way === proxied ? proxied(`GET http://${authority}/`) : way(authority),
          )
          if (status !== expected || !codesOf(expected).includes(code)) passed.push(`${authority}: ${status} ${code}`)
        }
      }
      t.strictSame(passed, [])
      t.equal(origin.connections(), canary)
    })

    t.test('T05 a URL that parsers read in different ways is refused as it stands', async t => {
      const passed: string[] = []
      for (const url of ssrfUrls.flatMap(url => [url, encodeURI(url)])) {
        const { status, code } = await sends(t, proxied(`GET ${url}`))
        if (status !== 400 || !/^invalid_(?:target|request)$/.test(code)) passed.push(`${url}: ${status} ${code}`)
      }
      t.strictSame(passed, [])
    })

    t.test('T09 T42 no forged, misspelled or doubled credential opens a tunnel or sends a request', async t => {
      const [head = '', payload = '', signature = ''] = token.split('.')
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
      const other = await gateway.agent()
      const forged = [
        ...[
          `${part({ alg: 'none', typ: 'JWT' })}.${payload}.`,
          `${head}.${payload}.`,
          `${head}.${payload}`,
          `.${token}`,
        ],
        ...[`${head}.${part({ ...claims, sub: other.id })}.${signature}`, `${token}.${signature}`, `${token}x`],
        ...[`${head}.${other.token.split('.')[1]}.${signature}`, `${head}.${payload}.${other.token.split('.')[2]}`],
        ...[`agw_${'A'.repeat(43)}`, 'x'.repeat(8_192)],
      ]
      const credentials = [
        ...forged.flatMap(text => [`Bearer ${text}`, basic('agent', text), basic(text, '')]),
        ...[token, 'Bearer', 'Bearer ', `Digest ${token}`, `Bearer ${token}, Bearer ${token}`, `Bearer \u00a0${token}`],
        ...[`Bearer ${token}\u00a0`, `Bearer "${token}"`, `Basic ${token}`, basic('', ''), basic(token, 'x')],
      ].map(value => `Proxy-Authorization: ${value}\r\n`)
      const fields = [
        ...credentials,
        '',
        `Authorization: ${authorization}\r\n`,
        `Proxy-Authorisation: ${authorization}\r\n`,
      ]
      const before = origin.seen.length
      const passed: string[] = []
      for (const field of fields) {
        for (const line of [`CONNECT 127.0.0.1:${origin.port}`, `GET ${origin.url}/`]) {
          const { status, code } = await sends(t, proxied(line, field))
          if (status !== 407 || code !== 'proxy_authentication_required')
            passed.push(`${line} ${field}: ${status} ${code}`)
        }
      }
      for (const field of [
        `Proxy-Authorization: ${authorization}\r\nProxy-Authorization: ${authorization}\r\n`,
        `Proxy-Authorization: ${authorization}\r\nProxy_Authorization: ${authorization}\r\n`,
      ]) {
        for (const line of [`CONNECT 127.0.0.1:${origin.port}`, `GET ${origin.url}/`]) {
          const { status } = await sends(t, proxied(line, field))
          if (status !== 400) passed.push(`${line} ${field}: ${status}`)
        }
      }
      t.strictSame(passed, [])
      t.equal(origin.seen.length, before)
    })
  })
}
