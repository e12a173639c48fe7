import { chmodSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'
import { testdir } from '../fixtures/testdir.ts'

const directory = testdir(t, { policies: {}, key: 'never-shown-0123456789' })
chmodSync(join(directory, 'key'), 0o600)
const bench = await startConsole(t, {
  directory,
  alone: 'it has credentials of its own',
  config: {
    Secrets: [{ Name: 'key', FromFile: 'key' }],
    Credentials: [{ Name: 'shop', Secret: 'key' }],
    Upstreams: [{ Host: 'api.shop.example', Credential: 'shop' }],
  },
})
const { signedIn } = bench

t.test('an admin sees how a credential is and renews it; one that fails is named on the overview', async t => {
  const admin = await bench.agent({ name: 'ada', roles: ['admin'], ownerId: 'people' })
  const page = await signedIn(t, admin, { route: '/credentials', viewport: { width: 360, height: 740 } })
  await sees(t, page, 'api.shop.example')
  await page.getByRole('button', { name: 'Renew shop' }).click()
  await sees(t, page, 'shop was renewed.')
  await sees(t, page.locator('.record'), 'ready')
  t.notMatch(await page.content(), /never-shown/)
  rmSync(join(directory, 'key'))
  await page.getByRole('button', { name: 'Renew shop' }).click()
  await sees(t, page, 'shop was not renewed.')
  await sees(t, page.locator('.record'), 'failing')
  await assertAccessible(t, page, 'credentials')
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
  await page.goto(`${bench.url}/console/#/overview`)
  await sees(t, page, /Not renewed: shop/)
  await page.clock.install()
  await page.reload()
  await sees(t, page, /Not renewed: shop/)
  writeFileSync(join(directory, 'key'), 'never-shown-9876543210', { mode: 0o600 })
  await bench.manage('POST', '/credentials/shop/renew')
  // What is read again does so by a timer.
  await page.clock.fastForward(11_000)
  await page.getByText(/Not renewed: shop/).waitFor({ state: 'detached' })
})

t.test('an auditor sees credentials and cannot renew them', async t => {
  const auditor = await bench.agent({ name: 'audrey', roles: ['auditor'] })
  const page = await signedIn(t, auditor, { route: '/credentials' })
  await sees(t, page, 'api.shop.example')
  t.equal(await page.getByRole('button', { name: 'Renew shop' }).count(), 0)
})

t.test('the page of an agent names the credentials that its requests get', async t => {
  const auditor = await bench.agent({ name: 'audrey', roles: ['auditor'] })
  const page = await signedIn(t, auditor, { route: `/agents/${bench.bot.id}` })
  const card = page.getByRole('region', { name: 'Credentials that the gateway adds' })
  await sees(t, card, 'api.shop.example')
  await sees(t, card, 'shop')
  await sees(t, card.getByRole('link'), 'All credentials')
})
