/** Tunnels after the authority was replaced, in every thread. Threat T75. */
import { chmodSync, copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { authorityOf, openSecure, startForward } from '../fixtures/forward.ts'
import { testdir } from '../fixtures/testdir.ts'

const threads = { System: { Server: { Threads: 2 } } }
const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/ca/${name}.pem`, import.meta.url))
/** So many that the system gives some to each thread. */
const connections = 12

type Gateway = Awaited<ReturnType<typeof startForward>>

/** Opens tunnels as a client that trusts these certificates alone; rejects when one is not of an authority among them. */
async function openAll(t: Test, gateway: Gateway, ca: string): Promise<void> {
  const { token } = await gateway.agent()
  const asked = { to: 'example.com:443', authorization: `Bearer ${token}`, tls: { ca } }
  for (let opened = 0; opened < connections; opened++) {
    const { secure } = await openSecure(t, gateway, asked)
    secure.destroy()
  }
}

t.test('after a rotation every thread presents certificates of the new authority', async t => {
  const gateway = await startForward(t, { config: threads })
  const before = authorityOf(gateway)
  await openAll(t, gateway, before)
  t.equal((await gateway.manage('POST', '/forward-proxy/ca/rotate')).status, 200)
  const after = authorityOf(gateway)
  await t.resolves(openAll(t, gateway, after))
  await t.rejects(openAll(t, gateway, before))
})

t.test('a reload, as SIGHUP asks for, does the same with an authority in files', async t => {
  const directory = testdir(t, { policies: {} })
  const put = (name: string) => {
    copyFileSync(fixture(name), join(directory, 'ca.pem'))
    copyFileSync(fixture(`${name}-key`), join(directory, 'ca-key.pem'))
    chmodSync(join(directory, 'ca-key.pem'), 0o600)
  }
  const [root, rsa] = ['root', 'rsa'].map(name => readFileSync(fixture(name), 'utf8'))
  put('issuing')
  const Ca = { CertificateFile: 'ca.pem', KeyFile: 'ca-key.pem' }
  const gateway = await startForward(t, { directory, config: { ...threads, ForwardProxy: { Ca } } })
  await t.resolves(openAll(t, gateway, root!))
  put('rsa')
  t.ok(await gateway.gateway.reload())
  await t.resolves(openAll(t, gateway, rsa!))
})
