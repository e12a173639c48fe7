import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const gateway = await startGateway(t)
const { token } = await gateway.agent()

t.test('an allowed request reaches the upstream with method, path, query, headers and body as they were', async t => {
  const origin = await startOrigin(t, (_req, res) => {
    res.writeHead(418, 'Short and stout', { 'X-Upstream': 'yes', 'Set-Cookie': ['a=1', 'b=2', 'c=3'] })
    res.end('from upstream')
  })
  const answer = await gateway.proxy(token, `${origin.url}/a%2Fb;c/d?x=1&x=2&y=+%20`, {
    method: 'POST',
    headers: { 'X-Mine': 'one', Authorization: 'Bearer of-the-upstream', 'Content-Type': 'text/x-mine' },
    body: 'the body',
  })
  t.equal(answer.status, 418)
  t.equal(answer.statusText, 'Short and stout')
  t.equal(await answer.text(), 'from upstream')
  t.equal(answer.headers.get('x-upstream'), 'yes')
  t.strictSame(
    answer.headers.getSetCookie(),
    ['a', 'b', 'c'].map((name, i) => `${name}=${i + 1}; Path=/proxy/${origin.url}`),
  )
  const [seen] = origin.seen
  t.equal(origin.seen.length, 1)
  t.equal(seen?.method, 'POST')
  t.equal(seen?.target, '/a%2Fb;c/d?x=1&x=2&y=+%20')
  t.equal(seen?.body.toString(), 'the body')
  t.equal(seen?.headers['x-mine'], 'one')
  t.equal(seen?.headers.authorization, 'Bearer of-the-upstream')
  t.equal(seen?.headers['content-type'], 'text/x-mine')
  t.equal(seen?.headers.via, '1.1 agent-gateway')
  t.equal(seen?.headers['gateway-authorization'], undefined)
  t.equal(seen?.headers.host, `127.0.0.1:${origin.port}`)
})

for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND']) {
  t.test(`${method} is forwarded as ${method}`, async t => {
    const origin = await startOrigin(t)
    const answer = await gateway.proxy(token, `${origin.url}/x`, { method })
    t.equal(answer.status, 200)
    t.equal(origin.seen[0]?.method, method)
  })
}
