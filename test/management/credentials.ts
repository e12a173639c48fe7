/** Credentials over the API: how they are, and never what they are. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'

const origin = await startOrigin(t)
const directory = testdir(t, { policies: {} })
const write = (text: string) => writeFileSync(join(directory, 'key'), text, { mode: 0o600 })
write('the-first-value')
const gateway = await startGateway(t, {
  directory,
  alone: 'each gateway keeps its own',
  config: {
    Secrets: [
      { Name: 'key', FromFile: 'key' },
      { Name: 'printed', FromCommand: [process.execPath, '-e', 'process.exit(7)'] },
    ],
    Credentials: [
      { Name: 'shop', Secret: 'key' },
      { Name: 'printed', Secret: 'printed' },
    ],
    Upstreams: [
      { Host: `127.0.0.1:${origin.port}`, Credential: 'shop', Header: 'X-Key', AllowHttp: true },
      { Host: 'print.example', Credential: 'printed', Policy: 'prints' },
    ],
  },
})
const { manage } = gateway
const read = async (path: string) => JSON.parse((await manage('GET', path)).text)

t.test('those of the settings are shown with their hosts and states', async t => {
  const [shop, printed] = await read('/credentials')
  t.match(shop, { name: 'shop', type: 'Value', hosts: [`127.0.0.1:${origin.port}`], state: 'ready', usable: true })
  t.match(shop, { expiresAt: null, lastUsedAt: null, problem: null })
  t.match(printed, { name: 'printed', hosts: ['print.example'], state: 'unused', usable: false, renewedAt: null })
  t.strictSame(await read('/credentials/shop'), shop)
  t.equal((await manage('GET', '/credentials/none')).status, 404)
  t.notMatch((await manage('GET', '/credentials')).text, /the-first-value/)
})

t.test('those of an agent are the ones that its requests may get, with the hosts of these', async t => {
  await gateway.policy({ name: 'prints', default: 'Allow', rules: [] })
  const [shopper, printer] = [await gateway.agent(), await gateway.agent({ policyName: 'prints' })]
  const of = async (id: string) =>
    (await read(`/credentials?agentId=${id}`)) as readonly { name: string; hosts: string[] }[]
  t.match(await of(shopper.id), [{ name: 'shop', hosts: [`127.0.0.1:${origin.port}`] }])
  t.equal((await of(shopper.id)).length, 1)
  t.match(await of(printer.id), [{ name: 'shop' }, { name: 'printed', hosts: ['print.example'] }])
  t.equal((await manage('GET', '/credentials?agentId=nobody')).status, 404)
})

t.test('a renewal is on record, and what fails says why', async t => {
  const failed = JSON.parse((await manage('POST', '/credentials/printed/renew')).text)
  t.match(failed, { state: 'failing', usable: false, problem: /ended with exit code 7/ })
  t.equal((await manage('POST', '/credentials/none/renew')).status, 404)
  const { items } = await read('/audit?action=credential.renew')
  t.match(items, [{ subject: 'printed' }])
  const auditor = await gateway.agent({ roles: ['auditor'] })
  t.equal((await manage('GET', '/credentials', undefined, auditor.token)).status, 200)
  t.equal((await manage('POST', '/credentials/shop/renew', undefined, auditor.token)).status, 403)
})

t.test('what is shown is what is sent: a file that changes, and one that cannot be used', async t => {
  const { token } = await gateway.agent()
  const sent = async () => {
    await gateway.proxy(token, origin.url)
    return origin.seen.at(-1)?.headers['x-key']
  }
  t.equal(await sent(), 'the-first-value')
  const { renewedAt } = await read('/credentials/shop')
  write('the-second-value')
  await eventually(sent, value => value === 'the-second-value')
  t.not((await read('/credentials/shop')).renewedAt, renewedAt)
  write('two\nlines')
  const shop = await eventually(
    () => read('/credentials/shop'),
    ({ state }) => state === 'failing',
  )
  t.match(shop, { usable: true, problem: /must be one line/ })
  t.equal(await sent(), 'the-second-value')
  t.equal(await gateway.gateway.reload(), false)
})
