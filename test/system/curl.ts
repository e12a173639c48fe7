import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'

const run = promisify(execFile)
const gateway = await startGateway(t)
const { token } = await gateway.agent()

t.test('curl that begins with HTTP/2 shows that HTTP/1.1 is spoken', async t => {
  const url = `${gateway.url}/proxy/http://127.0.0.1:1/`
  const args = ['--silent', '--http2-prior-knowledge', '--write-out', ' %{http_code} %header{gateway-error}', url]
  const { stdout } = await run('curl', args)
  t.match(stdout, /"detail":"The gateway serves HTTP\/1\.0 and HTTP\/1\.1\.".*\} 505/)
})

t.test('curl follows, and sends the cookies of one upstream to no other', async t => {
  const cookie = 'sid=secret; Path=/; Domain=127.0.0.1'
  const third = await startOrigin(t)
  const origin = await startOrigin(t, (req, res) => {
    if (req.url === '/login') res.writeHead(302, { 'Set-Cookie': cookie, Location: '/account' })
    else res.writeHead(302, { Location: third.url })
    res.end()
  })
  const jar = join(testdir(t), 'cookies')
  const args = ['-sSL', '-b', jar, '-c', jar, '-H', `Gateway-Authorization: Bearer ${token}`]
  await run('curl', [...args, `${gateway.url}/proxy/${origin.url}/login`])
  t.strictSame(
    origin.seen.map(({ target, headers }) => [target, headers.cookie]),
    [
      ['/login', undefined],
      ['/account', 'sid=secret'],
    ],
  )
  t.equal(third.seen.length, 1)
  t.equal(third.seen[0]?.headers.cookie, undefined)
})
