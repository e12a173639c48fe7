/** A person connects an account in the console. Threat T91. */
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startAccountProvider } from '../fixtures/account-provider.ts'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'
import { secureCaFile } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'

const directory = testdir(t, { policies: {}, key: 'client-secret-0123456789' })
chmodSync(join(directory, 'key'), 0o600)
const server = 'https://idp.example'
const provider = await startAccountProvider(t)
provider.interval = 1
// The egress guard lets no code reach this token server.
const endpoints = { TokenUrl: 'https://127.0.0.1:1/token', AuthorizationUrl: `${server}/consent` }
const bench = await startConsole(t, {
  directory,
  alone: 'it has credentials of its own',
  lookup: async () => ['127.0.0.1'],
  config: {
    Proxy: { CaFile: secureCaFile },
    System: { PublicUrl: 'https://gateway.example' },
    Secrets: [{ Name: 'key', FromFile: 'key' }],
    Credentials: [
      { Name: 'mail', Type: 'Connect', Secret: 'key', ...endpoints, ClientId: 'gateway', Scope: 'mail.read' },
      {
        ...{
          Name: 'drive',
          Type: 'Connect',
          Per: 'All',
          Issuer: provider.url,
          ClientId: 'gateway',
          ClientAuth: 'None',
        },
        ...{ Scope: 'read', StepUpScope: 'write' },
      },
    ],
    Upstreams: [
      { Host: 'mail.example', Credential: 'mail' },
      { Host: new URL(provider.url).host, Credential: 'drive' },
    ],
  },
})
const admin = await bench.agent({ name: 'ada', roles: ['admin'] })

async function signedIn(t: Test, { id } = admin) {
  const { page, allow } = await bench.window(t)
  allow(server)
  await page.goto(await bench.link(id))
  await page.waitForSelector('[data-ready]')
  return page
}

t.test('the page of an agent leads to what is asked for, and the tab that comes back ends it', async t => {
  const page = await signedIn(t)
  await page.route(`${server}/**`, route => {
    const state = new URL(route.request().url()).searchParams.get('state')
    const location = `${bench.url}/console/connected/mail?code=secret-code&state=${state}`
    return route.fulfill({ status: 302, headers: { location } })
  })
  const begun: string[] = []
  page.on('request', request => void (request.method() === 'POST' && begun.push(request.url())))
  await page.goto(`${bench.url}/console/#/agents/${bench.bot.id}`)
  await page.getByRole('link', { name: 'Connect account' }).first().click()
  await sees(t, page, `for requests of the agent ${bench.bot.id}`)
  await assertAccessible(t, page, 'intent')
  t.strictSame(begun, [], 'an address begins nothing')
  await page.getByRole('button', { name: 'Begin' }).click()
  for (const text of ['mail.example', 'mail.read', 'idp.example', bench.bot.id]) await sees(t, page, text)
  await assertAccessible(t, page, 'connect')
  t.notMatch(await page.evaluate('JSON.stringify({ ...sessionStorage })'), /connection/)
  await page.getByRole('button', { name: 'Continue' }).click()
  await sees(t, page, /Egress|not allowed|denied|refus|answer|connect/i)
  await page.waitForURL(`${bench.url}/console/#/connected/mail`)
  t.notMatch(await page.evaluate('JSON.stringify({ ...sessionStorage })'), /connection/)
})

t.test('a person enters a code at the server instead, and the page learns when it was done', async t => {
  const page = await signedIn(t)
  await page.goto(`${bench.url}/console/#/connect/drive`)
  await sees(t, page, 'connects an account of yours. Go on only if you want that yourself')
  await page.getByRole('button', { name: 'Use a code instead' }).click()
  for (const text of ['WDJB-MJHT', `${provider.url}/enter`, 'Waiting until you have consented', 'left'])
    await sees(t, page, text)
  const link = page.getByRole('link', { name: `${provider.url}/enter` })
  t.equal(await link.getAttribute('rel'), 'noopener noreferrer')
  for (const name of ['Copy address', 'Copy code']) t.ok(await page.getByRole('button', { name }).isVisible())
  await assertAccessible(t, page, 'device')
  provider.device = 'access_denied'
  await sees(t, page, 'Access was denied at the server.')
  t.equal(await link.count(), 0, 'the code that is of no use is gone')
  provider.device = 'authorization_pending'
  await page.route('**/credentials/drive/connected', route => route.abort(), { times: 1 })
  await page.getByRole('button', { name: 'Use a code instead' }).click()
  await sees(t, page, 'WDJB-MJHT')
  provider.device = 'ada'
  await sees(t, page, 'Connected, for requests of all agents.')
  t.equal(await page.getByRole('button', { name: 'Use a code instead' }).count(), 0)
  const { token } = await bench.agent({ name: 'writer' })
  t.equal((await bench.proxy(token, `${provider.url}/?wants=admin%20write`)).status, 403)
  await page.goto(`${bench.url}/console/#/credentials`)
  await sees(t, page, 'An upstream wants the scope write')
  await page.getByRole('link', { name: 'Connect again with it' }).click()
  await sees(t, page, 'with the scope write. Go on only if')
  await page.getByRole('button', { name: 'Begin' }).click()
  await sees(t, page, 'The account does not have write yet. Continue only if its agents should.')
})

t.test('an answer that this tab has not asked for is sent to nobody', async t => {
  const page = await signedIn(t)
  await page.goto(`${bench.url}/console/connected/mail?code=forged&state=forged`)
  await sees(t, page, 'This consent was not begun in this tab')
  t.equal(page.url(), `${bench.url}/console/#/connected/mail`)
})

t.test('an owner who is no admin connects the accounts of the own agents from their pages', async t => {
  const page = await signedIn(t, await bench.agent({ name: 'olga', ownerId: 'olga', roles: ['reviewer'] }))
  const own = await bench.agent({ name: 'own', ownerId: 'olga' })
  await page.goto(`${bench.url}/console/#/agents/${own.id}`)
  await page.getByRole('link', { name: 'Connect account' }).click()
  await page.getByRole('button', { name: 'Begin' }).click()
  await sees(t, page, 'mail.read')
  await page.goto(`${bench.url}/console/#/connect/drive`)
  await sees(t, page, 'Go on only if')
  t.equal(await page.getByText('mail.read').count(), 0, 'another address begins with nothing of the one before')
  await page.goto(`${bench.url}/console/#/agents/${bench.bot.id}`)
  await sees(t, page, bench.bot.id)
  t.equal(await page.getByRole('link', { name: 'Connect account' }).count(), 0)
})
