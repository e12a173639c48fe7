import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'

const bench = await startConsole(t)
const { reviewer, hold, signedIn, deny, approve } = bench

t.test('history has what was decided, with the outcome, who decided and the comment', async t => {
  const page = await signedIn(t, reviewer, { route: '/history' })
  await sees(t, page, 'Nothing was decided yet')
  await assertAccessible(t, page, 'empty history')
  const denied = await hold('/refunds?order=7')
  await deny(denied, { comment: 'ask \u202efirst' })
  await approve(await hold('/mails', { method: 'PUT' }))
  await page.getByRole('button', { name: 'Show 1 change' }).click()
  for (const text of ['/refunds?order=7', 'Denied by tester', 'ask ', 'u{202e}', 'posts']) await sees(t, page, text)
  await assertAccessible(t, page, 'history')
  await page.getByRole('link', { name: '/refunds?order=7' }).click()
  await page.waitForURL(`**/#/requests/${denied}`)
  await sees(t, page.locator('.request'), 'Denied by you')
})

t.test('filters are kept in the address, and a link has them', async t => {
  await approve(await hold('/sent'))
  const page = await signedIn(t, reviewer, { route: '/history?status=denied' })
  await sees(t, page, '/refunds?order=7')
  t.equal(await page.locator('.record').count(), 1)
  await page.getByLabel('Outcome').selectOption('approved')
  await sees(t, page, '/sent')
  t.equal(await page.getByText('/refunds').count(), 0)
  await page.getByLabel('Rule').fill('no-such-rule')
  await sees(t, page, 'Nothing matches')
  t.match(page.url(), /status=approved&rule=no-such-rule$/)
  await page.getByLabel('Rule').fill('')
  await sees(t, page, '/sent')
})

t.test('history is readable on a phone, and without a mouse', async t => {
  const page = await signedIn(t, reviewer, { route: '/history', viewport: { width: 360, height: 720 } })
  await sees(t, page, '/refunds?order=7')
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
  await page.getByLabel('Rule').focus()
  await page.keyboard.press('Tab')
  t.match(await page.evaluate('document.activeElement.getAttribute("href")'), /^#\/requests\//)
})
