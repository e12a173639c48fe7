import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { git, startGitServer } from '../clients/fixtures/git-server.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'

const { root, origin } = await startGitServer(t)
const Directory = fileURLToPath(new URL('../../policies', import.meta.url))
const gateway = await startGateway(t, { config: { Policy: { Directory }, HumanInTheLoop: { WaitSeconds: 60 } } })
const { token } = await gateway.agent({ policyName: 'default' })
const reviewer = await gateway.agent({ roles: ['reviewer'], ownerId: 'people' })
const header = `http.extraHeader=Gateway-Authorization: Bearer ${token}`
const remote = `${gateway.url}/proxy/${origin.url}/code.git`
const clone = join(root, 'clone')

t.test('the shipped policy lets git clone and fetch', async t => {
  await git('-c', header, 'clone', '--quiet', remote, clone)
  t.equal(await readFile(join(clone, 'hello.txt'), 'utf8'), 'hello from the repository\n')
  await git('-C', join(root, 'work'), 'commit', '--quiet', '--allow-empty', '--message=second')
  await git('-C', join(root, 'work'), 'push', '--quiet', join(root, 'code.git'), 'main')
  await git('-c', header, '-C', clone, 'pull', '--quiet')
  t.match(await git('-C', clone, 'log', '--format=%s'), /^second\nfirst\n$/)
  t.ok(origin.seen.some(({ method, target }) => method === 'POST' && target === '/code.git/git-upload-pack'))
})

t.test('git prints why a clone was refused', async t => {
  const rules = [{ name: 'closed', effect: 'Deny', reason: 'Closed on Sundays', conditions: [] }]
  const denied = await gateway.agent({ policyName: await gateway.policy({ name: 'closed', rules }) })
  const asDenied = `http.extraHeader=Gateway-Authorization: Bearer ${denied.token}`
  const said = git('-c', asDenied, 'clone', '--quiet', remote, join(root, 'none'))
  await t.rejects(said, /remote: Denied by policy: .*Closed on Sundays/)
})

/** Pushes, with a verdict while git waits; gives the log of the repository. */
async function push(verdict: 'approve' | 'deny') {
  await git('-C', clone, 'commit', '--quiet', '--allow-empty', `--message=${verdict}`)
  const pushed = git('-c', header, '-C', clone, 'push', '--quiet').catch((error: Error) => error.message)
  const list = async () => JSON.parse((await gateway.manage('GET', '/hitl')).text) as { id: string; url: string }[]
  const [held] = await eventually(list, ({ length }) => length === 1)
  await gateway.manage('POST', `/hitl/${held?.id}/${verdict}`, {}, reviewer.token)
  const said = await pushed
  return { url: held?.url, said, log: await git('-C', join(root, 'code.git'), 'log', '--format=%s') }
}

t.test('git push waits for a reviewer, and pushes nothing when it is denied', async t => {
  const { url, said, log } = await push('deny')
  t.equal(url, `${origin.url}/code.git/git-receive-pack`)
  t.match(said, /403/)
  t.equal(log, 'second\nfirst\n')
})

t.test('git push waits for a reviewer, and pushes when it is approved', async t => {
  const { said, log } = await push('approve')
  t.equal(said, '')
  t.equal(log, 'approve\ndeny\nsecond\nfirst\n')
})
