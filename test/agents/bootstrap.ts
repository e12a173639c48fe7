import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type BootstrapOptions, bootstrapAdmin, bootstrapFile, parseCredential } from '../../src/agents/bootstrap.ts'
import { StartupError } from '../../src/base/refusals.ts'
import { by, openBench, openOwn } from '../fixtures/registry.ts'
import { testdir } from '../fixtures/testdir.ts'

const id = '0b8e8a4e-0f43-4c1b-9d0c-6a1f0a3c2b11'

async function openData(t: Test) {
  const bench = await openBench({ store: await openOwn(t) })
  const dataDirectory = join(testdir(t), 'data')
  const unset = { agentId: undefined, clientSecret: undefined, mayMakeCredential: true }
  const options: BootstrapOptions = { ...bench, dataDirectory, ...unset }
  const file = bootstrapFile(dataDirectory)
  return { ...bench, options, file, credential: () => parseCredential(readFileSync(file, 'utf8'))! }
}

/** Bars the last admin as lost trust does: no operation of the API may. */
async function bar({ store }: Pick<BootstrapOptions, 'store'>, agentId: string): Promise<void> {
  const read = await store.agents.trust(agentId)
  const entry = { at: 0, ...by, action: 'agent.quarantine', subject: agentId, details: {} }
  await store.agents.judge(agentId, read!, { ...read!, status: 'Quarantined' }, entry)
}

t.test('the first start makes an admin whose credential lies in a file for its owner alone', async t => {
  const { registry, options, file, credential } = await openData(t)
  const made = await bootstrapAdmin(options)
  t.equal(statSync(file).mode & 0o777, 0o600)
  const { agentId, clientSecret } = credential()
  t.equal(agentId, made)
  t.match(registry.get(agentId), { name: 'admin', roles: ['admin'], status: 'Active' })
  t.equal(await registry.verifySecret(agentId, clientSecret), true)
  t.ok(clientSecret.length >= 43)
})

t.test('a later start makes nothing and leaves the file as it is', async t => {
  const { registry, options, file } = await openData(t)
  await bootstrapAdmin(options)
  const text = readFileSync(file, 'utf8')
  t.equal(await bootstrapAdmin(options), undefined)
  t.equal(readFileSync(file, 'utf8'), text)
  t.equal(registry.values().length, 1)
})

t.test('after a crash between file and store, the next start takes the file up', async t => {
  const { registry, options, credential } = await openData(t)
  const broken = {
    ...options,
    registry: { ...registry, hasActive: () => false, register: () => Promise.reject(new Error('killed')) },
  }
  await t.rejects(bootstrapAdmin(broken as unknown as BootstrapOptions), { message: 'killed' })
  const { agentId, clientSecret } = credential()
  t.equal(await bootstrapAdmin(options), agentId)
  t.equal(await registry.verifySecret(agentId, clientSecret), true)
})

t.test('when the only admin is barred, the next start makes a new one', async t => {
  const { registry, options, credential } = await openData(t)
  const first = await bootstrapAdmin(options)
  await bar(options, first!)
  t.equal(registry.get(first!)?.status, 'Quarantined')
  const second = await bootstrapAdmin(options)
  t.not(second, first)
  t.equal(credential().agentId, second)
})

t.test('a configured credential is used, and not written to any file', async t => {
  const { registry, options, file } = await openData(t)
  t.equal(
    await bootstrapAdmin({ ...options, agentId: id.toUpperCase(), clientSecret: 'from the vault of the owner' }),
    id,
  )
  t.equal(await registry.verifySecret(id, 'from the vault of the owner'), true)
  t.throws(() => statSync(file), { code: 'ENOENT' })
})

t.test('a configured id alone gets a secret in the file', async t => {
  const { options, credential } = await openData(t)
  t.equal(await bootstrapAdmin({ ...options, agentId: id }), id)
  t.equal(credential().agentId, id)
})

t.test('a damaged file is replaced', async t => {
  const { options, file, credential } = await openData(t)
  await bootstrapAdmin(options)
  await bar(options, credential().agentId)
  writeFileSync(file, '{"agentId":')
  t.equal(await bootstrapAdmin(options), credential().agentId)
})

t.test('an id that a barred agent has already cannot become the admin', async t => {
  const { registry, agent, options } = await openData(t)
  await agent({ id })
  await registry.transition(id, 'revoke', by)
  await t.rejects(bootstrapAdmin({ ...options, agentId: id }), StartupError)
})

t.test('a file that others can read stops the start', async t => {
  const { options, file, credential } = await openData(t)
  await bootstrapAdmin(options)
  await bar(options, credential().agentId)
  chmodSync(file, 0o644)
  await t.rejects(bootstrapAdmin(options), { name: 'StartupError', message: /chmod 600/ })
})
