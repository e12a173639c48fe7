import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'

const bench = await startConsole(t)
const { bot, reviewer, origin, hold, signedIn, deny, proxy, manage } = bench
const admin = await bench.agent({ name: 'ada', roles: ['admin'], ownerId: 'people' })
const agentNow = async () => JSON.parse((await manage('GET', `/agents/${bot.id}`)).text)

t.test('an admin finds an agent, sees how it stands, and quarantines it after a confirmation', async t => {
  await deny(await hold('/refunds'), { comment: 'not now' })
  const refused = await proxy(bot.token, `${origin.url}/items/7`, { method: 'DELETE' })
  t.equal(refused.status, 403)
  const page = await signedIn(t, admin, { route: '/agents' })
  const rows = page.getByRole('row').filter({ hasText: 'careful' })
  await rows.first().waitFor()
  await assertAccessible(t, page, 'agents')
  await page.locator(`a[href="#/agents/${bot.id}"]`).click()
  for (const text of ['Active', 'policy_denied', '/items/7', '/refunds', 'not now', '1 held, 1 denied by people']) {
    await sees(t, page, text)
  }
  await assertAccessible(t, page, 'one agent')
  await page.getByRole('button', { name: 'Quarantine…' }).click()
  await sees(t, page, 'Nothing of it passes until an admin lifts')
  await assertAccessible(t, page, 'confirmation')
  await page.keyboard.press('Escape')
  t.equal((await agentNow()).status, 'Active', 'Esc changes nothing')
  await page.getByRole('button', { name: 'Quarantine…' }).click()
  await page.getByRole('button', { name: 'Quarantine', exact: true }).click()
  await page.getByRole('button', { name: 'Lift quarantine…' }).click()
  t.equal((await agentNow()).status, 'Quarantined')
  await page.getByRole('button', { name: 'Lift quarantine', exact: true }).click()
  await page.getByRole('button', { name: 'Quarantine…' }).waitFor()
  await sees(t, page, 'Quarantine lifted')
  t.equal((await agentNow()).status, 'Active')
})

t.test('policy and roles are assigned, and a refusal is shown in the dialog', async t => {
  const page = await signedIn(t, admin, { route: `/agents/${bot.id}` })
  await page.getByRole('button', { name: 'Policy…' }).click()
  await page.getByLabel('Policy', { exact: true }).selectOption('allow-all')
  await assertAccessible(t, page, 'policy')
  await page.getByRole('button', { name: 'Assign' }).click()
  await page.getByRole('link', { name: 'allow-all' }).waitFor()
  await page.getByRole('button', { name: 'Roles…' }).click()
  await page.getByLabel('auditor').check()
  await assertAccessible(t, page, 'roles')
  await page.getByRole('button', { name: 'Assign' }).click()
  await sees(t, page, 'agent, auditor')
  t.match(await agentNow(), { policyName: 'allow-all', roles: ['agent', 'auditor'] })
  await page.getByRole('button', { name: 'Revoke…' }).click()
  await manage('POST', `/agents/${bot.id}/revoke`)
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.locator('dialog [role=alert], .mark.bad').first().waitFor()
})

t.test('a reviewer sees the agent and has no button that changes it, on a phone too', async t => {
  const page = await signedIn(t, reviewer, { route: `/agents/${bot.id}`, viewport: { width: 360, height: 720 } })
  await sees(t, page, 'Revoked')
  t.equal(await page.locator('.page-head button').count(), 0)
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
  await page.goto(`${bench.url}/console/#/agents`)
  await sees(t, page, 'This page needs another role')
  await page.goto(`${bench.url}/console/#/agents/00000000-0000-4000-8000-000000000000`)
  await page.getByRole('alert').waitFor()
})
