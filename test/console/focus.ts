/** By keyboard alone: on each page Tab reaches everything that can be pressed, and no press loses the focus. */
import type { Page } from 'playwright-core'
import t from 'tap'
import { startConsole } from '../fixtures/console.ts'
import { routesOf } from '../fixtures/console-routes.ts'

const bench = await startConsole(t)
const { hold, approve, signedIn, call } = bench
const admin = await bench.agent({ name: 'ada', roles: ['admin'], ownerId: 'people' })
const headers = { 'Content-Type': 'application/json' }
const decided = await hold('/decided', { headers, body: '{"amount":1}' })
await approve(decided, { grant: { minutes: 5, maxUses: 5 } })
await call('POST', `/agents/${bench.bot.id}/keys`, { token: admin.token, body: { name: 'build server' } })
const waiting = await hold('/waits?a=b', { headers, body: JSON.stringify({ amount: 2, list: Array(120).fill('x') }) })
const routes = [...routesOf(bench), [`/requests/${waiting}`, 'asks for'], [`/requests/${decided}`, 'asks for']] as const

/** Notes each frame in which nothing has the focus although something had it; the last that had it is named. */
const watchFocus = `{
  window.lost = []
  let last
  const look = () => {
    const { activeElement } = document
    if (activeElement !== document.body) last = activeElement
    else if (last && window.isArmed) lost.push(last.outerHTML.slice(0, 120))
    requestAnimationFrame(look)
  }
  look()
}`

/** What can be pressed, in the page or in the dialog over it, each with a mark of its own. */
const markAll = `{
  const root = document.querySelector('dialog[open]') ?? document.querySelector('main')
  const all = [...root.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
  const isUsable = one => one.checkVisibility({ visibilityProperty: true }) && !one.matches(':disabled, [tabindex="-1"]')
  window.kindOf = one => one.tagName + (one.matches('a') ? one.hash.split('/')[1] : one.textContent.replace(/\\d+/g, ''))
  window.marked = all.filter(isUsable)
}`

async function open(page: Page, route: string, heading: string): Promise<void> {
  await page.evaluate(
    `window.isArmed = false; document.activeElement?.blur(); location.hash = ${JSON.stringify(`#${route}`)}`,
  )
  await page.getByRole('heading', { name: heading }).first().waitFor({ state: 'attached' })
  await settled(page)
}

/** Nothing is being read, and two frames were drawn. */
const settled = (page: Page) =>
  page.evaluate(`new Promise(resolve => {
    const isBusy = () => document.querySelector('.loading, [aria-busy=true]') !== null
    const look = () => isBusy() ? requestAnimationFrame(look) : requestAnimationFrame(() => setTimeout(resolve))
    requestAnimationFrame(look)
  })`)

t.test('Tab reaches everything on each page, in sight, with a frame around it', async t => {
  const page = await signedIn(t, admin, { viewport: { width: 640, height: 450 } })
  for (const [route, heading] of routes) {
    await open(page, route, heading)
    await page.evaluate(`${markAll}; document.getElementById('main').focus()`)
    const count = Number(await page.evaluate('marked.length'))
    const reached = new Set<number>()
    const faults: string[] = []
    // A date has several stops.
    for (let press = 0; press <= count + 12; press++) {
      await page.keyboard.press('Tab')
      const [index, fault] = (await page.evaluate(`(() => {
        const { activeElement: at } = document
        // Around a text of several columns it is around all of them.
        const framed = one => [one, one.parentElement].some(part => getComputedStyle(part).outlineStyle !== 'none')
        const { top, bottom, left, right } = at.getBoundingClientRect()
        const isSeen = bottom > 0 && right > 0 && top < innerHeight && left < innerWidth
        // Chromium marks the stop within a date.
        const hasFrame = at.matches('[type=datetime-local]') || at.matches(':focus-visible') && framed(at)
        return [marked.indexOf(at), at === document.body || (isSeen && hasFrame) ? '' : at.outerHTML.slice(0, 160)]
      })()`)) as [number, string]
      if (index < 0) break
      reached.add(index)
      if (fault !== '') faults.push(fault)
    }
    const missed = await page.evaluate(
      `marked.flatMap((one, index) => ${JSON.stringify([...reached])}.includes(index) ? [] : one.outerHTML.slice(0, 160))`,
    )
    t.strictSame([missed, faults], [[], []], `${route}: all ${count}`)
  }
})

t.test('no button, and no way to another page, loses the focus', async t => {
  const page = await signedIn(t, admin)
  await page.evaluate(watchFocus)
  for (const [route, heading] of routes) {
    await open(page, route, heading)
    // One of each kind.
    const kinds = (await page.evaluate(`${markAll}; [...new Set(marked.map(kindOf))]`)) as readonly string[]
    for (const [index, kind] of kinds.entries()) {
      if (index > 0) await open(page, route, heading)
      const isPressed = await page.evaluate(`(() => {
        ${markAll}
        const one = marked.find(one => kindOf(one) === ${JSON.stringify(kind)})
        if (!one?.matches('button, a, summary')) return false
        one.focus()
        window.isArmed = true
        one.click()
        return true
      })()`)
      if (isPressed !== true) continue
      await settled(page)
      if ((await page.locator('dialog[open]').count()) > 0) {
        await page.keyboard.press('Escape')
        await page.locator('dialog').waitFor({ state: 'detached' })
        await settled(page)
      }
    }
    t.strictSame(await page.evaluate('lost.splice(0)'), [], route)
  }
})
