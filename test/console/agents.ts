import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'
import { eventually } from '../fixtures/gateway.ts'

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
  await page.locator('.notice', { hasText: 'A person quarantined it' }).waitFor()
  await page.getByRole('button', { name: 'Lift quarantine', exact: true }).click()
  await page.getByRole('button', { name: 'Quarantine…' }).waitFor()
  await sees(t, page, 'Quarantine lifted')
  t.equal((await agentNow()).status, 'Active')
})

t.test('of an agent that the gateway quarantined, the page says why and what comes next', async t => {
  const rogue = await bench.newBot()
  for (let denials = 0; denials < 10; denials++) await deny(await hold('/refunds', { bot: rogue }))
  await eventually(
    async () => JSON.parse((await manage('GET', `/agents/${rogue.id}`)).text).status,
    status => status === 'Quarantined',
  )
  const page = await signedIn(t, reviewer, { route: `/agents/${rogue.id}` })
  const notice = page.getByRole('region', { name: 'Quarantine' })
  await sees(
    t,
    notice,
    /^The gateway quarantined it .*: its trust fell from 0\.50 to 0\.\d\d, after 10 denials by people\./,
  )
  await assertAccessible(t, page, 'a quarantined agent')
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

t.test(
  'an admin registers an agent whose key is shown once, makes and revokes keys, and rotates the secret',
  async t => {
    const page = await signedIn(t, admin, { route: '/agents' })
    await page.getByRole('link', { name: 'Register an agent' }).click()
    // The list has a field of this name, too.
    await page.getByLabel('Name', { exact: true }).fill('billing bot')
    await page.getByLabel('Owner, who').fill('team-pay')
    await page.getByLabel('Tags').fill('team: pay\nbad name: x')
    await page.getByRole('button', { name: 'Register' }).click()
    await sees(t, page.getByRole('alert'), /tags/)
    await page.getByLabel('Policy').selectOption('allow-all')
    await page.getByLabel('Tags').fill('team: pay')
    await assertAccessible(t, page, 'registration')
    await page.getByRole('button', { name: 'Register' }).click()
    const key = String(await page.locator('.secret code').textContent())
    await assertAccessible(t, page, 'registered')
    for (const name of ['Python', 'TypeScript', 'Any program']) await page.getByRole('button', { name }).click()
    await sees(t, page, "agent-gateway run --agent 'billing bot' -- python agent.py")
    t.equal((await bench.proxy(key, bench.origin.url)).status, 200, 'the key works')
    await page.getByRole('link', { name: 'billing bot' }).click()
    await sees(t, page, 'first key')
    await sees(t, page, 'team: pay')
    t.equal(await page.getByText(key).count(), 0)
    await page.getByRole('button', { name: 'New key…' }).click()
    await page.getByLabel('Where it is used').fill('build server')
    await page.getByRole('button', { name: 'Make the key' }).click()
    const second = String(await page.locator('.secret code').textContent())
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
    t.equal((await bench.proxy(second, bench.origin.url)).status, 200)
    await page.locator('tr', { hasText: 'first key' }).getByRole('button').click()
    await page.getByRole('button', { name: 'Revoke', exact: true }).click()
    await sees(t, page, 'The key is revoked.')
    t.equal((await bench.proxy(key, bench.origin.url)).status, 401)
    await page.getByRole('button', { name: 'Secret…' }).click()
    await page.getByRole('button', { name: 'Rotate', exact: true }).click()
    await page.locator('.secret code').waitFor()
    await assertAccessible(t, page, 'the new secret')
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
    await page.goto(`${bench.url}/console/#/agents`)
    await page.getByLabel('Name, owner').fill('TEAM-PAY')
    await sees(t, page, '1 agent')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('policy CARE')
    await sees(t, page.getByRole('option'), /^Policy careful/)
    await page.locator('[role=combobox]').fill('agent billing')
    await sees(t, page.getByRole('option'), /^Agent billing bot/)
    await page.keyboard.press('Enter')
    await sees(t, page.getByRole('heading'), 'billing bot')
  },
)
