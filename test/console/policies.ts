import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'

const bench = await startConsole(t)
const { bot, reviewer, origin, hold, signedIn, deny, proxy, manage } = bench
const author = await bench.agent({ name: 'audrey', roles: ['auditor'], ownerId: 'people' })
await manage('POST', '/policies', {
  name: 'orders',
  default: 'Deny',
  rules: [
    { name: 'reads', effect: 'Allow', conditions: [{ field: 'input.method', operator: 'eq', value: 'GET' }] },
    {
      name: 'large',
      effect: 'Hitl',
      priority: 10,
      conditions: [
        {
          any: [
            { field: 'input.body.amount', operator: 'gt', value: 100 },
            { field: 'input.headers.x-risk', operator: 'eq', value: 'yes' },
          ],
        },
      ],
    },
    { name: 'trial', effect: 'Deny', mode: 'shadow', conditions: [] },
  ],
})

t.test('a policy shows its rules in the order in which they are asked, and how often each decided', async t => {
  for (const method of ['GET', 'DELETE', 'DELETE']) {
    await (await proxy(bot.token, origin.url, { method })).body?.cancel()
  }
  const page = await signedIn(t, author, { route: '/policies' })
  await page.getByRole('link', { name: 'careful' }).waitFor()
  await assertAccessible(t, page, 'policies')
  await page.getByRole('link', { name: 'careful' }).click()
  await sees(t, page, 'decided 2 requests')
  await sees(t, page, 'input.method eq "DELETE"')
  await page.goto(`${bench.url}/console/#/policies/orders`)
  await sees(t, page, 'any of')
  t.match(await page.locator('.rule-head strong').allTextContents(), ['large', 'trial', 'reads', 'Otherwise'])
  await assertAccessible(t, page, 'one policy')
})

t.test('a request that is typed is explained rule by rule, with the values that were seen', async t => {
  const page = await signedIn(t, author, { route: '/policies/orders' })
  await page.getByLabel('Method').fill('post')
  await page.getByLabel('URL').fill('https://api.example/v1/orders')
  await page.getByLabel('Header fields').fill('Content-Type: application/json\nX-Risk: no')
  await page.getByLabel('Body').fill('{"amount": 250}')
  await page.getByRole('button', { name: 'Explain' }).click()
  const explained = page.locator('.explained')
  for (const text of ['Hitl', 'decides', 'input.body.amount gt "100"', 'was 250', 'was "no"', 'does not hold']) {
    await sees(t, explained, text)
  }
  await assertAccessible(t, page, 'explanation')
  await page.getByLabel('URL').fill('ftp://api.example')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').waitFor()
})

t.test('a request is taken from the history', async t => {
  const headers = { 'Content-Type': 'application/json' }
  const id = await hold('/refunds', { headers, body: '{"amount": 7}' })
  await deny(id)
  const page = await signedIn(t, author, { route: '/history' })
  await page.getByRole('link', { name: 'Explain' }).click()
  await sees(t, page.locator('.explained'), 'rule "posts"')
  t.equal(await page.getByLabel('Body').inputValue(), '{"amount": 7}')
  t.match(await page.getByLabel('URL').inputValue(), /\/refunds$/)
})

t.test('a policy is readable on a phone, and not for reviewers', async t => {
  const page = await signedIn(t, author, { route: '/policies/orders', viewport: { width: 360, height: 720 } })
  await sees(t, page, 'any of')
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
  const other = await signedIn(t, reviewer, { route: '/policies' })
  await sees(t, other, 'This page needs another role')
})
