import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { runToEnd } from '../fixtures/process.ts'

t.test('prints a link that signs in once, as the agent that is named', async t => {
  const gateway = await startGateway(t)
  const ada = await gateway.agent({ name: 'ada', roles: ['reviewer'] })
  const env = { SYSTEM__SERVER__HTTP__PORT: String(gateway.port) }
  const run = (...args: string[]) => runToEnd(t, ['console', ...args], { cwd: gateway.directory, env })
  const signIn = async (link: string) => {
    const code = new URL(link).hash.replace('#code=', '')
    const answer = await gateway.manage('POST', '/console/sessions', { code }, null)
    return answer.status === 200 ? JSON.parse(answer.text).agent : answer.status
  }
  const named = await run('--as', 'ada')
  t.strictSame([named.code, named.err], [0, ''])
  t.match(named.out, new RegExp(`^${gateway.url}/console/#code=[\\w-]{43,}\n$`))
  t.match(await signIn(named.out), { id: ada.id, name: 'ada' })
  t.equal(await signIn(named.out), 401)
  t.match(await signIn((await run('--url', 'https://gateway.example/')).out), { name: 'admin' })
  t.match(
    (await run('--url', 'https://gateway.example/base/')).out,
    /^https:\/\/gateway\.example\/base\/console\/#code=/,
  )
  const unknown = await run('--as', 'nobody')
  t.match(unknown, { code: 1, out: '', err: /gave no link\. No agent has this name or id/ })
  t.match(await run('--url', 'gateway'), { code: 1, out: '', err: /is not a URL/ })
  t.match(await run('--at', 'unix:/tmp/none.sock'), { code: 1, out: '', err: /Name the address of the proxy/ })
})
