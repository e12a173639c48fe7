import type { Page } from 'playwright-core'
import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'
import { eventually } from '../fixtures/gateway.ts'
import { serveHour } from '../fixtures/hour.ts'

const bench = await startConsole(t)
const { bot, reviewer, origin, hold, signedIn, proxy, manage } = bench
const admin = await bench.agent({ name: 'ada', roles: ['admin'], ownerId: 'people' })

const serve = async (page: Page) => serveHour(page, JSON.parse((await manage('GET', '/overview')).text))

/** Waits until more than a thousand points of a plot have a colour: more than its axes have. */
const painted = (page: Page) =>
  eventually(
    () =>
      page.evaluate<number>(`(() => {
        const canvas = document.querySelector('.plot canvas')
        if (canvas === null || canvas.width === 0) return 0
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
        return data.filter((value, index) => index % 4 === 3 && value > 0).length
      })()`),
    points => points > 1_000,
  )

t.test('what is so now, and what was denied, is there from the start', async t => {
  const refused = await proxy(bot.token, `${origin.url}/items/7`, { method: 'DELETE' })
  t.equal(refused.status, 403)
  await hold('/refunds')
  const page = await signedIn(t, admin, { route: '/overview' })
  await sees(t, page, 'careful/deletes')
  t.equal(await page.locator('.tile dd').first().textContent(), '1')
  await page.getByRole('link', { name: 'careful/deletes' }).click()
  await sees(t, page, 'decided 1 request')
})

t.test('plots are drawn under the policy of the page, in light and dark, with the numbers as text', async t => {
  const page = await signedIn(t, reviewer)
  await serve(page)
  await page.goto(`${bench.url}/console/#/overview`)
  await sees(t, page, 'Requests by outcome')
  t.equal(await page.locator('.plot canvas').count(), 8)
  t.ok(await painted(page))
  await sees(t, page, 'forwarded')
  t.match(await page.locator('.legend').nth(3).textContent(), /p50 0\.31.*p99 0\.83/)
  await assertAccessible(t, page, 'overview')
  await page.getByRole('button', { name: 'Last day' }).click()
  await page.waitForURL('**/#/overview?range=day')
  await page.getByRole('button', { name: 'Last day', pressed: true }).waitFor()
})

t.test('plots fit a phone', async t => {
  const page = await signedIn(t, reviewer, { viewport: { width: 360, height: 720 } })
  await serve(page)
  await page.goto(`${bench.url}/console/#/overview`)
  t.ok(await painted(page))
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
})

t.test('a page whose file is gone since the gateway was updated offers to reload', async t => {
  const page = await signedIn(t, reviewer)
  await page.route(/assets\/page-/, route => route.fulfill({ status: 404 }))
  await page.goto(`${bench.url}/console/#/overview`)
  await sees(t, page, 'This page could not be loaded')
  await page.unrouteAll()
  await page.getByRole('button', { name: 'Reload' }).click()
  await sees(t, page, 'Oldest pending for')
})

t.test('verdicts are counted by reviewer, and a browser with an odd language draws the plots', async t => {
  await bench.deny(await hold('/a'))
  await bench.approve(await hold('/b'))
  const page = await signedIn(t, reviewer)
  await page.addInitScript("Object.defineProperty(navigator, 'language', { value: 'en-US@posix', configurable: true })")
  await serve(page)
  await page.goto(`${bench.url}/console/#/overview`)
  await page.reload()
  t.ok(await painted(page))
  const tiles = page.locator('dl[aria-label="Verdicts"] dd')
  await tiles.nth(4).waitFor()
  t.match(await tiles.allTextContents(), [/^\d+ s$/, '1', '1', '0', '0'])
  await sees(t, page.getByRole('row'), /^tester2\d+ s$/)
  await assertAccessible(t, page, 'verdicts')
})
