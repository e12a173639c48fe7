import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'
import { routesOf } from '../fixtures/console-routes.ts'

const bench = await startConsole(t)
const { reviewer, hold, signedIn, deny } = bench
const path = `/${'a-long-segment-without-any-break'.repeat(12)}?q=${'x'.repeat(400)}`
const headers = { 'Content-Type': 'application/json', 'X-Long': 'y'.repeat(2_000) }

const phone = { width: 360, height: 740 }
/** 1280 pixels at 200 %. */
const twice = { width: 640, height: 430 }
const desktop = { width: 1280, height: 860 }

for (const [name, viewport] of [
  ['360 pixels', phone],
  ['twice the size', twice],
] as const) {
  t.test(`a verdict is given in a window of ${name}, and nothing is wider than it`, async t => {
    const page = await signedIn(t, reviewer, { viewport, hasTouch: true })
    const overflow = async () =>
      Number(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'))
    const id = await hold(path, { headers, body: JSON.stringify({ long: 'z'.repeat(3_000) }) })
    await page.locator('.row a').tap()
    await page.locator('.fields summary').tap()
    t.equal(await overflow(), 0)
    await page.locator('.row').waitFor({ state: 'hidden' })
    await assertAccessible(t, page, 'a request')
    await page.getByRole('button', { name: '← Queue' }).tap()
    await page.locator('.row').waitFor()
    await page.locator('.row a').tap()
    await page.getByRole('button', { name: 'Deny…' }).tap()
    await page.getByRole('button', { name: /Ask the owner/ }).tap()
    await assertAccessible(t, page, 'a denial')
    const box = await page.locator('dialog').boundingBox()
    t.ok(box !== null && box.x >= 0 && box.x + box.width <= viewport.width && box.height <= viewport.height)
    await page.getByRole('button', { name: 'Deny', exact: true }).tap()
    await sees(t, page.locator('.detail'), 'Denied by you')
    t.equal(JSON.parse((await bench.manage('GET', `/hitl/${id}`)).text).status, 'Denied')
  })
}

t.test(
  'every page is accessible and no wider than its window: on a phone in light and dark, at twice the size, on a desktop',
  async t => {
    const admin = await bench.agent({ roles: ['admin'], ownerId: 'people' })
    const page = await signedIn(t, admin, { viewport: phone })
    const titles = new Set<string>()
    for (const [route, name] of routesOf(bench)) {
      await page.goto(`${bench.url}/console/#${route}`)
      const heading = page.getByRole('heading', { level: 1, name })
      await heading.waitFor({ state: 'attached' })
      await page.locator('.loading').waitFor({ state: 'detached' })
      const text = String(await heading.textContent())
      titles.add(await page.title())
      t.equal(await page.title(), `${text} · Agent Gateway`)
      t.equal(await page.locator('.spoken').first().textContent(), text, 'screen readers say where they are')
      await assertAccessible(t, page, route)
      t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360, route)
      for (const size of [twice, desktop]) {
        await page.setViewportSize(size)
        const name = `${route}, ${size.width} pixels`
        t.equal(await page.evaluate('document.documentElement.scrollWidth'), size.width, name)
        await assertAccessible(t, page, name, ['light'])
      }
      await page.setViewportSize(phone)
    }
    t.equal(titles.size, routesOf(bench).length, 'no two pages have the same title')
  },
)

t.test('on a phone the account is at hand, and signs out', async t => {
  const page = await signedIn(t, await bench.newReviewer({ name: 'a-reviewer-with-a-long-name' }), { viewport: phone })
  await page.getByRole('button', { name: 'a-reviewer' }).click()
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), phone.width)
  await assertAccessible(t, page, 'account')
  await page.getByRole('button', { name: 'Sign out' }).last().click()
  await page.getByLabel('Agent id').waitFor()
})

t.test('the name of the open page is in sight on a narrow screen', async t => {
  const admin = await bench.agent({ roles: ['admin'], ownerId: 'people' })
  const page = await signedIn(t, admin, { viewport: phone, route: '/overview' })
  const name = page.locator('nav [aria-current]', { hasText: 'Overview' })
  await name.waitFor()
  const box = await name.boundingBox()
  t.ok(box !== null && box.x >= 0 && box.x + box.width <= 360)
})

t.test('by keyboard alone: through the page, over the list, into the verdict, and back', async t => {
  const page = await signedIn(t, reviewer)
  const ids = [await hold('/one'), await hold('/two')]
  await page.getByText('2 waiting').first().waitFor()
  await page.keyboard.press('Tab')
  t.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to the content')
  await page.keyboard.press('Enter')
  t.equal(await page.evaluate('document.activeElement.id'), 'main')
  await page.keyboard.press('/')
  await page.keyboard.type('two')
  await sees(t, page, '1 of 2 waiting')
  // Past order and groups.
  for (let count = 0; count < 4; count++) await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await sees(t, page.locator('.request .path'), '/two')
  await page.keyboard.press('x')
  await sees(t, page, '1 selected')
  await page.keyboard.press('Escape')
  await page.keyboard.press('d')
  await page.getByRole('button', { name: 'Deny', exact: true }).waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('?')
  await page.getByRole('checkbox', { name: /single key/ }).waitFor()
  await page.keyboard.press('Shift+Tab')
  await page.getByRole('checkbox', { name: /single key/ }).uncheck()
  await page.keyboard.press('Escape')
  await page.keyboard.press('d')
  t.equal(await page.locator('dialog').count(), 0, 'shortcuts are switched off')
  await page.keyboard.press('Control+k')
  await page.keyboard.type('request two')
  await sees(t, page.getByRole('option'), '/two')
  await page.keyboard.press('Enter')
  await page.waitForURL(`**/#/requests/${ids[1]}`)
  await sees(t, page.locator('.request .path'), '/two')
  await page.keyboard.press('Control+k')
  await page.keyboard.press('ArrowDown')
  await assertAccessible(t, page, 'the palette')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/#/history')
  await page.locator('#main:focus').waitFor()
  for (const id of ids) await deny(id)
})
