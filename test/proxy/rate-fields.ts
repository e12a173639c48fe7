import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const alone = 'gateways that share the rate do not know what is left'

t.test('the RateLimit fields come when less than a tenth of the burst is left, also on a refusal', async t => {
  const origin = await startOrigin(t, (_, res) => {
    res.setHeader('RateLimit', '"upstream";r=5;t=9')
    res.end('ok')
  })
  const gateway = await startGateway(t, {
    config: { System: { RateLimit: { Burst: 21, RequestsPerMinute: 1 } }, Fleet: { RateLimits: 'PerGateway' } },
    alone,
  })
  const { token } = await gateway.agent()
  const call = async (url = `${origin.url}/`) => {
    const answer = await gateway.proxy(token, url)
    await answer.text()
    return [answer.status, answer.headers.get('ratelimit'), answer.headers.get('ratelimit-policy')]
  }
  for (let i = 0; i < 18; i++) t.strictSame(await call(), [200, '"upstream";r=5;t=9', null])
  const policy = '"agent-gateway";q=1;w=60;agw-burst=21'
  t.strictSame(await call(), [200, '"upstream";r=5;t=9, "agent-gateway";r=2;t=1140', policy])
  t.strictSame(await call('nonsense'), [400, '"agent-gateway";r=1;t=1200', policy])
  t.strictSame(await call('http://169.254.169.254/'), [403, '"agent-gateway";r=0;t=1260', policy])
  const [status, left, limit] = await call()
  t.equal(status, 429)
  t.match(left, /^"agent-gateway";r=0;t=[1-9]\d*$/)
  t.equal(limit, policy)
  t.equal((await call('nonsense'))[0], 429, 'it may take long to read')
  t.match((await gateway.exchanges(23)).at(-2), { status: 429, origin: origin.url, path: '/' })
  t.equal((await call(`${origin.url}/${'a'.repeat(1_024)}`))[0], 429)
  const { status: shown, path } = (await gateway.exchanges(24)).at(-1)!
  t.strictSame([shown, path], [429, undefined])
})
