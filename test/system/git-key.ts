import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { git, startGitServer } from '../clients/fixtures/git-server.ts'
import { holdsKey, startKeyGateway } from '../clients/fixtures/key-gateway.ts'
import { eventually } from '../fixtures/gateway.ts'

const { root, origin } = await startGitServer(t)
const { gateway, key, urlWithKey } = await startKeyGateway(t, origin.url)
const clone = join(root, 'clone')

t.test('git clones with a key as the password, which it sends when it is asked', async t => {
  await git('clone', '--quiet', `${urlWithKey}/code.git`, clone)
  t.equal(await readFile(join(clone, 'hello.txt'), 'utf8'), 'hello from the repository\n')
  const refused = () => gateway.log.filter(({ cause }) => cause === 'missing')
  t.ok((await eventually(refused, ({ length }) => length > 0)).length > 0)
  t.notOk(holdsKey(origin.seen, key))
})

t.test('git push is held, approved and done', async t => {
  await git('-C', clone, 'commit', '--quiet', '--allow-empty', '--message=pushed')
  const pushed = git('-C', clone, 'push', '--quiet')
  const list = async () => JSON.parse((await gateway.manage('GET', '/hitl')).text) as { id: string }[]
  const [held] = await eventually(list, ({ length }) => length === 1)
  const reviewer = await gateway.agent({ roles: ['reviewer'], ownerId: 'people' })
  await gateway.manage('POST', `/hitl/${held?.id}/approve`, {}, reviewer.token)
  t.equal(await pushed, '')
  t.equal(await git('-C', join(root, 'code.git'), 'log', '--format=%s'), 'pushed\nfirst\n')
  t.notOk(holdsKey(origin.seen, key))
})
