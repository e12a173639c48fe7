/** The way back in for who has lost the credential of the first admin. */
import { readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

async function reset(directory: string, env: Readonly<Record<string, string>> = {}) {
  const shell = fakeShell(['admin', 'reset'], { STORAGE__DATADIRECTORY: join(directory, 'data'), ...env })
  const code = await runCommand(shell)
  return { code, said: [...shell.printed, ...shell.complained].join('\n') }
}

const credentialIn = (directory: string) => JSON.parse(readFileSync(join(directory, 'data', 'bootstrap.json'), 'utf8'))

t.test('the first admin gets a new secret, every token is void, and the audit trail says so', async t => {
  const directory = testdir(t)
  const origin = await startOrigin(t)
  const before = await startGateway(t, { directory })
  const { agentId, clientSecret } = credentialIn(directory)
  const bot = await before.agent()
  const other = { name: 'second', ownerId: 'operator', roles: ['admin'] }
  t.equal((await before.manage('POST', '/agents', other)).status, 201)
  t.equal((await before.manage('POST', `/agents/${agentId}/quarantine`)).status, 200)
  t.match(await reset(directory), { code: 1, said: /in use by another gateway\. Stop that one first/ })
  await before.close()
  rmSync(join(directory, 'data', 'bootstrap.json'))

  const { code, said } = await reset(directory)
  t.equal(code, 0, said)
  t.match(said, `admin ${agentId} has a new secret`)
  t.equal(statSync(join(directory, 'data', 'bootstrap.json')).mode & 0o777, 0o600)
  t.equal(credentialIn(directory).agentId, agentId)
  t.not(credentialIn(directory).clientSecret, clientSecret)

  const after = await startGateway(t, { directory })
  t.equal((await after.manage('GET', '/agents', undefined, before.adminToken)).status, 401)
  t.equal((await after.proxy(bot.token, origin.url)).status, 401)
  t.match(JSON.parse((await after.manage('GET', `/agents/${agentId}`)).text), { status: 'Active' })
  const { items } = JSON.parse((await after.manage('GET', '/audit?action=admin.reset')).text)
  t.match(items, [{ actor: 'gateway', subject: agentId, details: { tokens: 'void', after: { status: 'Active' } } }])
  t.notMatch(JSON.stringify(items), /clientSecret|secretHash|\$2b/)
})

t.test('a configured secret is the one that is set, and a configured id must be that of an admin', async t => {
  const directory = testdir(t)
  const gateway = await startGateway(t, { directory })
  const { agentId, clientSecret } = credentialIn(directory)
  await gateway.close()
  const configured = { SECURITY__BOOTSTRAP__CLIENTSECRET: 'mN4-vQ7_zRk2-wXy8pLd' }
  const other = { ...configured, SECURITY__BOOTSTRAP__AGENTID: '00000000-0000-4000-8000-000000000001' }
  t.match(await reset(directory, other), { code: 1, said: /must be the id of an admin/ })
  t.match(await reset(directory, { ...configured, SECURITY__BOOTSTRAP__AGENTID: agentId }), {
    code: 0,
    said: /Security:Bootstrap/,
  })
  t.equal(credentialIn(directory).clientSecret, clientSecret, 'the file is not used then')
})

t.test('a data folder without agents has no admin to reset', async t => {
  t.match(await reset(testdir(t)), { code: 1, said: /There is no admin.*Start the gateway/ })
})
