/** A gateway that stops does not wait for tunnels without a request. */
import t from 'tap'
import { openSecure, openTunnel, secureSetup, startForward } from '../fixtures/forward.ts'
import { openHttp2 } from '../fixtures/forward-http2.ts'
import { merge } from '../fixtures/gateway.ts'
import { startSecureOrigin } from '../fixtures/origin.ts'

const origin = await startSecureOrigin(t)
const to = `idp.test:${origin.port}`

for (const threads of [1, 2]) {
  t.test(`with ${threads === 1 ? 'one thread' : 'two threads'} unused tunnels are closed at once`, async t => {
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
    const { session } = await openHttp2(t, gateway, { to, authorization })
    t.equal(await gateway.close(), 0, 'no request was cut off')
    t.ok(session.closed)
    for (const client of [silent, halfway, ...secured]) t.notMatch(await client.closed(), /HTTP\/1\.1 (?!200)/)
  })
}
