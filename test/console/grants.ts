import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'

const bench = await startConsole(t)
const { bot, reviewer, origin, hold, signedIn, approve, proxy } = bench
const post = async (path: string) => (await proxy(bot.token, origin.url + path, { method: 'POST' })).status

t.test('a grant says what it lets pass, and ends when a reviewer ends it', async t => {
  const page = await signedIn(t, reviewer, { route: '/grants' })
  await sees(t, page, 'No grant is in force')
  await assertAccessible(t, page, 'no grant')
  await approve(await hold('/mails/7'), { grant: { minutes: 10, maxUses: 5, path: '/mails/*' } })
  t.equal(await post('/mails/8'), 200)
  await page.getByRole('button', { name: 'Refresh' }).click()
  for (const text of ['/mails/*', '4 uses left', '1 used', 'posts']) await sees(t, page, text)
  await assertAccessible(t, page, 'grants')
  await page.getByRole('button', { name: 'End…' }).click()
  await sees(t, page, 'End this grant?')
  await assertAccessible(t, page, 'ending a grant')
  await page.keyboard.press('Escape')
  t.equal(await post('/mails/8'), 200, 'Esc changes nothing')
  await page.getByRole('button', { name: 'End…' }).click()
  await page.getByRole('button', { name: 'End it' }).click()
  await sees(t, page, 'No grant is in force')
  t.equal(await post('/mails/8'), 202)
})

t.test('a grant is given on the page of a request that was approved before', async t => {
  const id = await hold('/notes/1')
  await (await approve(id)).arrayBuffer()
  const page = await signedIn(t, reviewer, { route: `/requests/${id}` })
  await page.getByRole('button', { name: 'Grant the next ones…' }).click()
  await sees(t, page.getByRole('dialog'), 'up to 10 more requests')
  await assertAccessible(t, page, 'granting afterwards')
  await page.getByRole('button', { name: 'Give the grant' }).click()
  await sees(t, page, 'The grant is in force.')
  t.equal(await post('/notes/1'), 200)
})

t.test('an auditor sees grants and cannot end them', async t => {
  await approve(await hold('/pay'), { grant: { minutes: 10, maxUses: 5 } })
  const auditor = await bench.agent({ name: 'audrey', roles: ['auditor'] })
  const page = await signedIn(t, auditor, { route: '/grants', viewport: { width: 360, height: 720 } })
  await sees(t, page, '5 uses left')
  t.equal(await page.getByRole('button', { name: 'End…' }).count(), 0)
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
})
