/** A dialog ends with its request and says why; after a verdict its outcome is shown, and the next request opens. */
import type { ServerResponse } from 'node:http'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { createClock } from '../fixtures/clock.ts'
import { sees, startConsole } from '../fixtures/console.ts'
import { eventually } from '../fixtures/gateway.ts'

const script = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
let endless: ServerResponse | undefined
const bench = await startConsole(t, {
  answer(req, res, seen) {
    req.resume().on('end', () => {
      if (req.url === '/html') res.writeHead(200, { 'Content-Type': 'text/html', 'X-Script': script }).end(script)
      else if (req.url === '/endless') {
        endless = res.writeHead(200)
        endless.write('first ')
      } else if (req.url === '/large') res.writeHead(200, { 'Content-Type': 'text/plain' }).end('x'.repeat(3_000_000))
      else
        res
          .writeHead(201, { 'Content-Type': 'application/json' })
          .end(`{"id":12345678901234567891,"of":"${seen.target}"}`)
    })
  },
})
const { reviewer, bot, hold, signedIn, call, deny, approve, origin, manage } = bench
const statusOf = async (id: string) => JSON.parse((await manage('GET', `/hitl/${id}`)).text).status

async function openDialog(t: Test, page: Page, path: string, key: string): Promise<void> {
  await page.locator('.row', { hasText: path }).locator('a').click()
  // Another request may be open until then.
  await sees(t, page.locator('.request .target'), path)
  await page.keyboard.press(key)
  await page.getByRole('dialog').waitFor()
}

async function endsWith(t: Test, page: Page, text: string | RegExp): Promise<void> {
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  // The notice takes the focus a frame after it is drawn.
  await sees(t, page.locator('.ended:focus'), text)
}

for (const [key, name] of [
  ['a', 'approval'],
  ['g', 'grant'],
  ['d', 'denial'],
] as const) {
  t.test(`the dialog of a ${name} ends when the agent withdraws the request`, async t => {
    const page = await signedIn(t, reviewer)
    const id = await hold(`/withdrawn-${name}`)
    await openDialog(t, page, `/withdrawn-${name}`, key)
    await call('DELETE', `/hitl/${id}`, { token: bot.token })
    await endsWith(t, page, 'The agent withdrew this request while the dialog was open. Nothing was sent.')
    await assertAccessible(t, page, 'notice')
    await page.keyboard.press('Control+Enter')
    t.equal(await statusOf(id), 'Withdrawn')
    t.equal(await page.getByRole('button', { name: 'Approve…' }).count(), 0)
  })
}

t.test('T08 a dialog ends when another reviewer decides, and names that person', async t => {
  const grace = await bench.newReviewer({ name: 'grace' })
  const page = await signedIn(t, reviewer)
  const [one, two] = [await hold('/first'), await hold('/second')]
  await openDialog(t, page, '/first', 'a')
  await deny(one, {}, grace.token)
  await endsWith(t, page, 'This request was denied by grace while the dialog was open.')
  await openDialog(t, page, '/second', 'd')
  await page.keyboard.type('no')
  await approve(two, {}, grace.token)
  await endsWith(t, page, 'This request was approved by grace while the dialog was open.')
  t.equal(await statusOf(two), 'Approved')
  await page.keyboard.press('Escape')
})

t.test('the own verdict is no ending by somebody else, when its event comes before its answer', async t => {
  const page = await signedIn(t, reviewer)
  const id = await hold('/own-event')
  await page.route('**/approve', async route => {
    const response = await route.fetch()
    await page.locator('.row', { hasText: 'completed' }).waitFor()
    await route.fulfill({ response })
  })
  await openDialog(t, page, '/own-event', 'a')
  await page.keyboard.press('Control+Enter')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await sees(t, page.locator('.request'), 'Approved by you: completed, 201')
  t.equal(await page.locator('.ended').count(), 0)
  t.equal(await statusOf(id), 'Approved')
})

t.test('a verdict that comes too late, before any event says so, closes the dialog', async t => {
  const page = await signedIn(t, reviewer)
  await page.route('**/deny', async route => {
    await deny(id)
    await route.continue()
  })
  const id = await hold('/late')
  await openDialog(t, page, '/late', 'd')
  await page.getByRole('button', { name: 'Deny', exact: true }).click()
  await endsWith(t, page, 'It was decided first: denied.')
})

t.test('a dialog ends when its request expires, also when no event says so', async t => {
  const clock = createClock(Date.now())
  const short = await startConsole(t, { clock, config: { HumanInTheLoop: { TimeoutSeconds: 60 } } })
  for (const isSilent of [false, true]) {
    const { page } = await short.window(t)
    if (isSilent) {
      await page.clock.install()
      await page.route('**/hitl/events', () => new Promise(() => {}))
    }
    await page.goto(await short.link(short.reviewer.id))
    const id = await short.hold('/soon')
    await short.openRequest(page, id, `/requests/${id}`)
    await page.keyboard.press('a')
    await page.getByRole('dialog').waitFor()
    clock.advance(61_000)
    // The clock of the gateway is ahead of the browser's by the minute of the first round.
    if (isSilent) await page.clock.runFor(125_000)
    await endsWith(t, page, 'This request expired while the dialog was open. Nothing was sent.')
    await sees(t, page, /is not here any more|expired while it was open/)
    await page.unrouteAll()
  }
})

t.test(
  'a request of an agent that is barred cannot be approved, says so, and can be once the agent is let in',
  async t => {
    const { page } = await bench.window(t)
    await page.clock.install()
    await page.goto(await bench.link(reviewer.id))
    const rogue = await bench.newBot()
    const id = await hold('/rogue', { bot: rogue })
    origin.seen.length = 0
    const become = async (operation: string) => {
      await manage('POST', `/agents/${rogue.id}/${operation}`)
      await page.clock.fastForward(11_000)
    }
    const approves = page.getByRole('button', { name: 'Approve…' })
    await bench.openRequest(page, id)
    await page.keyboard.press('a')
    await page.keyboard.type('looks right')
    await become('quarantine')
    await endsWith(
      t,
      page,
      /Nothing was sent. The agent is quarantined, so this request cannot be approved until an admin/,
    )
    t.equal(await approves.count(), 0)
    t.equal(await page.getByRole('button', { name: 'Approve with a grant…' }).count(), 0)
    await assertAccessible(t, page, 'an agent that is barred')
    await page.keyboard.press('a')
    await sees(t, page.locator('.spoken').last(), 'The agent is quarantined')
    t.equal(await page.getByRole('dialog').count(), 0)
    await become('lift-quarantine')
    await approves.waitFor()
    await page.keyboard.press('a')
    t.equal(await page.getByRole('textbox', { name: /Comment/ }).inputValue(), 'looks right')
    // Mostly before the page can know it.
    await manage('POST', `/agents/${rogue.id}/deactivate`)
    await page.keyboard.press('Control+Enter')
    // Or as the page has learned it meanwhile.
    await endsWith(t, page, /agent is (inactive|deactivated)/)
    await sees(t, page, 'cannot be approved until an admin activates the agent')
    await become('revoke')
    await sees(t, page, 'The agent is revoked for good')
    t.strictSame([origin.seen.length, await statusOf(id)], [0, 'Pending'])
    await page.getByRole('link', { name: 'See the agent' }).waitFor()
    await page.keyboard.press('d')
    await page.keyboard.press('Control+Enter')
    await sees(t, page, 'Denied by you')
  },
)

t.test('after a verdict the next request opens, and keys go on', async t => {
  const page = await signedIn(t, reviewer)
  const ids = [await hold('/one'), await hold('/two'), await hold('/three')]
  origin.seen.length = 0
  await sees(t, page, '3 waiting')
  await page.locator('.row a').nth(1).click()
  await sees(t, page.locator('.request .target'), '/two')
  await page.keyboard.press('a')
  await page.keyboard.press('Control+Enter')
  await sees(t, page.locator('.target'), '/three')
  await eventually(
    () => page.evaluate('document.activeElement.id'),
    id => id === 'sent',
  )
  await page.keyboard.press('d')
  await page.keyboard.press('Control+Enter')
  await sees(t, page.locator('.target'), '/one')
  await page.keyboard.press('a')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  t.strictSame(await Promise.all(ids.map(statusOf)), ['Pending', 'Approved', 'Denied'])
  await page.keyboard.press('a')
  await page.keyboard.press('Control+Enter')
  await sees(t, page.locator('.request'), 'Approved by you: completed, 201')
  t.strictSame(
    origin.seen.map(({ target }) => target),
    ['/two', '/one'],
  )
})

t.test("the upstream's answer is shown folded, with what it is, as text alone", async t => {
  const page = await signedIn(t, reviewer)
  page.on('dialog', dialog => t.fail(dialog.message()))
  const approveIn = async (path: string) => {
    await hold(path)
    await openDialog(t, page, path, 'a')
    await page.keyboard.press('Control+Enter')
    await sees(t, page.locator('.answer summary'), path)
  }
  await approveIn('/json')
  const answer = page.locator('.answer')
  await sees(t, answer, '201')
  t.notOk(await answer.getByText('12345678901234567891').isVisible(), 'folded')
  await answer.locator('summary').click()
  await sees(t, answer, '12345678901234567891')
  await sees(t, answer, 'application/json')
  await assertAccessible(t, page, 'an answer')
  await approveIn('/html')
  await sees(t, answer.locator('.raw'), script)
  t.equal(await page.locator('img, script:not([src])').count(), 0)
  await approveIn('/large')
  await sees(t, answer, 'Only the first MiB of the answer was read here.')
  await page.getByRole('button', { name: 'Dismiss the answer' }).click()
  t.equal(await answer.count(), 0)
})

t.test('an answer that does not end keeps nobody from the next request', async t => {
  const page = await signedIn(t, reviewer)
  await hold('/endless')
  const next = await hold('/next')
  await openDialog(t, page, '/endless', 'a')
  await page.keyboard.press('Control+Enter')
  await sees(t, page.locator('.target'), '/next')
  await page.locator('.answer summary').click()
  await sees(t, page.locator('.answer'), 'Reading the body…')
  endless?.end('last')
  await sees(t, page.locator('.answer'), 'last')
  await deny(next)
})
