/** A gateway that stops does not wait for tunnels without a request, and tells those with HTTP/2 that it takes no more. */
import { once } from 'node:events'
import { constants } from 'node:http2'
import t from 'tap'
import { openSecure, openTunnel, secureSetup, startForward } from '../fixtures/forward.ts'
import { openHttp2 } from '../fixtures/forward-http2.ts'
import { eventually, merge } from '../fixtures/gateway.ts'
import { startSecureOrigin } from '../fixtures/origin.ts'

let begun = 0
let end = () => {}
const origin = await startSecureOrigin(t, (_req, res) => {
  begun += 1
  res.write('begun')
  end = () => void res.end(', and ended')
})
const to = `idp.test:${origin.port}`

for (const threads of [1, 2]) {
  t.test(
    `with ${threads === 1 ? 'one thread' : 'two threads'} unused tunnels are closed, and a stream under way ends whole`,
    async t => {
      // Each wait is longer than that of the test.
      const server = { Threads: threads, HeadersTimeoutSeconds: 120, DrainSeconds: 120 }
      const gateway = await startForward(t, {
        ...secureSetup,
        config: merge(secureSetup.config ?? {}, { Proxy: { Http2Hosts: ['idp.test'] }, System: { Server: server } }),
      })
      const authorization = `Bearer ${(await gateway.agent()).token}`
      const [silent, halfway] = [
        await openTunnel(t, gateway, { to, authorization }),
        await openTunnel(t, gateway, { to, authorization }),
      ]
      halfway.write(Buffer.from('160301', 'hex'))
      const secured = await Promise.all([1, 2, 3].map(() => openSecure(t, gateway, { to, authorization })))
      const [unused, busy] = [
        await openHttp2(t, gateway, { to, authorization }),
        await openHttp2(t, gateway, { to, authorization }),
      ]
      const before = begun
      const answer = busy.send()
      await eventually(
        () => begun,
        count => count > before,
      )
      const told = [unused, busy].map(({ session }) => once(session, 'goaway'))
      const closed = gateway.close()
      for (const [code] of await Promise.all(told)) t.equal(code, constants.NGHTTP2_NO_ERROR)
      end()
      t.match(await answer, { status: 200, body: 'begun, and ended', reset: 0 })
      t.equal(await closed, 0, 'no request was cut off')
      for (const client of [silent, halfway, ...secured]) t.notMatch(await client.closed(), /HTTP\/1\.1 (?!200)/)
    },
  )
}
