import t from 'tap'
import type { Sendable } from '../../../src/pipeline/exchange.ts'
import { forward } from '../../../src/pipeline/outbound/forward.ts'
import type { Parts } from '../../../src/pipeline/parts.ts'

t.test('a request whose credential has ended since it was ready is not sent, and begins again', async t => {
  const exchange = {
    ...{ isOver: false, addressing: { road: 'proxy' }, resolution: {}, continue() {}, credentials: [{ name: 'shop' }] },
    ...{ req: { rawHeaders: [], method: 'GET' }, method: 'GET', fields: { contentLength: 0, names: [] } },
    ...{ tokenNames: [], target: { origin: { host: 'a' }, requestTarget: '/' }, agent: { id: 'ada' }, hasBody: false },
  }
  const sent: unknown[] = []
  const parts = {
    config: { Proxy: { Via: false } },
    credentials: { place: () => undefined },
    connections: { send: (...what: unknown[]) => sent.push(what) },
  }
  const again = () => t.fail('its step says so')
  t.equal(forward(exchange as unknown as Sendable, parts as unknown as Parts, again), 'again')
  t.strictSame(sent, [])
})
