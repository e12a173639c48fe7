import { readFileSync } from 'node:fs'
import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'

const bench = await startConsole(t)
const { reviewer, hold, signedIn, deny } = bench
const auditor = await bench.agent({ name: 'audrey', roles: ['auditor'], ownerId: 'people' })

t.test('an auditor filters the trail, opens an entry, and follows it to its request', async t => {
  const id = await hold('/refunds')
  await deny(id, { comment: 'a\u202eb' })
  const page = await signedIn(t, auditor, { route: '/audit' })
  await sees(t, page.locator('.record'), 'registered')
  await assertAccessible(t, page, 'audit trail')
  await page.getByLabel('Action').selectOption('hitl.deny')
  await sees(t, page, '1 entry')
  await sees(t, page.locator('.record'), /^1?\d* ?tester denied POST http.*\/refunds of tester, under the rule posts/)
  await sees(t, page.locator('.record .said'), 'u{202e}')
  await page.getByRole('button', { name: 'Details' }).click()
  for (const text of ['comment', 'u{202e}', 'Hash', 'Follows']) await sees(t, page, text)
  await assertAccessible(t, page, 'an entry')
  await page.getByLabel('Who').selectOption({ label: 'The gateway' })
  await sees(t, page, 'No entry matches')
  await page.getByLabel('Who').selectOption({ label: 'Anybody' })
  await page.locator(`a[href="#/requests/${id}"]`).click()
  await sees(t, page.locator('.request'), 'Denied by tester')
  await page.getByRole('link', { name: 'Entries in the audit trail' }).click()
  await sees(t, page, '2 entries')
})

t.test('times filter, in the zone of the reader', async t => {
  const page = await signedIn(t, auditor, { route: '/audit', timezoneId: 'Asia/Tokyo' })
  await page.getByLabel('From').fill('2099-01-01T00:00')
  await page.getByLabel('From').press('Tab')
  await sees(t, page, 'No entry matches')
  t.match(decodeURIComponent(page.url()), /from=2098-12-31T15:00:00\.000Z$/)
})

t.test('the whole trail is saved as a file', async t => {
  const page = await signedIn(t, auditor, { route: '/audit' })
  const saved = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Export all' }).click()
  const file = await saved
  t.equal(file.suggestedFilename(), 'audit.jsonl')
  const lines = readFileSync(await file.path(), 'utf8')
    .trim()
    .split('\n')
  t.ok(lines.length > 3)
  t.match(JSON.parse(lines[0] ?? ''), { seq: 1, previous: '0'.repeat(64) })
})

t.test('the trail is readable on a phone, and not for reviewers', async t => {
  const page = await signedIn(t, auditor, { route: '/audit', viewport: { width: 360, height: 720 } })
  await sees(t, page.locator('.record'), 'registered')
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
  const other = await signedIn(t, reviewer, { route: '/audit' })
  await sees(t, other, 'This page needs another role')
})

t.test('whether the chain holds is shown', async t => {
  const page = await signedIn(t, auditor)
  const verification = JSON.parse((await bench.manage('GET', '/audit/verification')).text)
  let state: object = { ...verification, status: 'intact', verifiedTo: 7, verifiedAt: new Date().toISOString() }
  await page.route(/\/audit\/verification/, route => route.fulfill({ json: state }))
  await page.goto(`${bench.url}/console/#/audit`)
  await sees(t, page, /up to entry 7/)
  await assertAccessible(t, page, 'intact trail')
  state = { ...state, status: 'broken', firstBroken: 3, why: 'record 3 was changed after it was written' }
  await page.reload()
  await sees(t, page, /broken at entry 3/)
})
