/** Each request goes to the addresses that were checked for it, also when others share its HTTP/2 connection. */
import { readFileSync } from 'node:fs'
import { createSecureServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { parseHostPatterns } from '../../src/base/host.ts'
import { certFile, keyFile } from '../fixtures/origin-http2.ts'
import { ask, openConnections } from '../fixtures/upstream.ts'

/** An upstream that takes one stream at a time, and the addresses at which it saw each path. */
async function start(t: Test, address: string, port: number, seen: string[]): Promise<number> {
  const files = { cert: readFileSync(certFile), key: readFileSync(keyFile) }
  const server = createSecureServer({ ...files, settings: { maxConcurrentStreams: 1 } })
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    seen.push(`${headers[':path']} at ${address}`)
    stream.respond({ ':status': 200 })
    stream.end('ok')
  })
  await new Promise<void>(resolve => server.listen(port, address, resolve))
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

t.test(
  'a request that its connection refuses is sent again to its own addresses, not to those of a later one',
  async t => {
    const seen: string[] = []
    const port = await start(t, '127.0.0.1', 0, seen)
    await start(t, '127.0.0.2', port, seen)
    const connections = openConnections(t, {
      http2Hosts: parseHostPatterns(['idp.test']),
      ca: readFileSync(certFile, 'utf8'),
    })
    const send = (path: string, ...addresses: string[]) =>
      ask(connections, port, { scheme: 'https', host: 'idp.test', path, addresses })
    await send('/first', '127.0.0.1').over
    // All three are for the free connection before it is known that it takes one at a time.
    const told = [send('/fills', '127.0.0.1'), send('/pinned', '127.0.0.1'), send('/wider', '127.0.0.2', '127.0.0.1')]
    for (const { over } of told) t.equal((await over).outcome, '200 ok')
    t.ok(seen.includes('/pinned at 127.0.0.1'), seen.join())
    t.notOk(seen.includes('/pinned at 127.0.0.2'))
  },
)
