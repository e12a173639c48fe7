/** What happens to the gateway, the network or the request while the page is open loses no comment and decides nothing twice. */

import t from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { buildConsole, sees, startConsole } from '../fixtures/console.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { careful } from '../fixtures/review.ts'

/** A transfer is sent once without an answer. */
const bench = await startConsole(t, {
  answer(req, res) {
    req.resume().on('end', () => (bench.origin.seen.length === 1 ? res.destroy() : res.writeHead(200).end()))
  },
})
const { reviewer } = bench

t.test('a gateway that restarts under the open page: the comment is kept, and the verdict given once', async t => {
  const bench = await startConsole(t)
  const id = await bench.hold('/pay')
  const page = await bench.signedIn(t, bench.reviewer)
  await page.locator('.row a').click()
  await page.getByRole('button', { name: 'Approve…' }).click()
  await page.getByRole('textbox', { name: /Comment/ }).fill('typed with care')
  await bench.close()
  await page.getByRole('button', { name: 'Approve and send' }).click()
  await sees(t, page, 'The gateway does not answer. Your comment is kept')
  await startGateway(t, {
    directory: bench.directory,
    consoleFolder: buildConsole(),
    config: {
      System: { Server: { Http: { Port: bench.port } } },
      Policies: [{ name: 'allow-all', default: 'Allow' }, careful],
    },
  })
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByText('Live', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Approve…' }).click()
  t.equal(await page.getByRole('textbox', { name: /Comment/ }).inputValue(), 'typed with care')
  await page.getByRole('button', { name: 'Approve and send' }).click()
  await sees(t, page, 'Approved by you: completed, 200')
  t.equal(bench.origin.seen.length, 1)
  t.ok(id)
})

t.test('without a network the page says so, and takes up again what it missed', async t => {
  const page = await bench.signedIn(t, reviewer)
  const first = await bench.hold('/before')
  await page.locator('.row').waitFor()
  await page.context().setOffline(true)
  const second = await bench.hold('/during')
  await bench.deny(first)
  await sees(t, page, 'Not live')
  await page.context().setOffline(false)
  await page.getByText('/during').waitFor()
  await sees(t, page.locator('.row'), 'Denied by you')
  await page.locator('.row', { hasText: '/during' }).locator('a').click()
  await page.getByRole('button', { name: 'Deny…' }).waitFor()
  t.equal(await page.locator('.row').count(), 1, 'what was decided meanwhile is gone')
  await bench.deny(second)
  await sees(t, page, 'Denied by you')
})

t.test('a list that is older than an event takes nothing away', async t => {
  const { page } = await bench.window(t)
  const [asked, told] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await page.route('**/hitl?limit=*', async route => {
    const answer = await route.fetch()
    asked.resolve()
    await told.promise
    await route.fulfill({ response: answer })
  })
  await page.goto(await bench.link(reviewer.id))
  await asked.promise
  const id = await bench.hold('/late')
  await page.getByText('1 waiting', { exact: false }).or(page.locator('.count')).first().waitFor()
  told.resolve()
  await page.locator('.row a').click()
  await sees(t, page.locator('.row'), /left/)
  t.equal(await page.locator('.row.over').count(), 0)
  await bench.deny(id)
})

t.test('a stream on which nothing comes is not live', async t => {
  const { page } = await bench.window(t)
  await page.clock.install()
  await page.route('**/hitl/events', async route => {
    if (route.request().method() === 'GET') await new Promise(() => {})
  })
  await page.goto(await bench.link(reviewer.id))
  await page.getByText('Connecting…').waitFor()
  await page.clock.runFor(35_000)
  await sees(t, page, 'Not live')
  await sees(t, page, /The gateway has said nothing for \d\d s/)
})

t.test('a request that expires while it is open says so', async t => {
  const clock = createClock(Date.now())
  const bench = await startConsole(t, { clock, config: { HumanInTheLoop: { TimeoutSeconds: 60 } } })
  const page = await bench.signedIn(t, bench.reviewer)
  await bench.openRequest(page, await bench.hold('/soon'))
  clock.advance(61_000)
  await sees(t, page.locator('.detail'), 'This request expired while it was open')
  t.match(await page.locator('.row').textContent(), /Expired/)
})

t.test('what was sent without an answer is sent again only behind a warning', async t => {
  const page = await bench.signedIn(t, reviewer)
  const id = await bench.hold('/once')
  await page.locator('.row a').click()
  await page.getByRole('button', { name: 'Approve…' }).click()
  await page.getByRole('button', { name: 'Approve and send' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await sees(t, page.locator('.ended'), 'the connection broke')
  await sees(t, page, 'failed, no answer')
  await sees(t, page, 'It was sent, and no answer came.')
  await page.getByRole('button', { name: 'Send again…' }).click()
  await sees(t, page, 'nobody knows whether it arrived')
  t.equal(bench.origin.seen.length, 1)
  await page.getByRole('button', { name: 'Send again', exact: true }).click()
  await sees(t, page, 'completed, 200')
  t.equal(bench.origin.seen.length, 2)
  t.ok(id)
})

t.test('a storage that takes no more says so, and the comment stays', async t => {
  const page = await bench.signedIn(t, reviewer)
  const id = await bench.hold('/full')
  await page.route('**/deny', route =>
    route.fulfill({
      status: 503,
      headers: { 'Gateway-Error': 'store_unavailable', 'Content-Type': 'application/problem+json' },
      body: JSON.stringify({ code: 'store_unavailable', detail: 'x' }),
    }),
  )
  await page.locator('.row a').click()
  await page.getByRole('button', { name: 'Deny…' }).click()
  await page.getByRole('textbox', { name: /Comment/ }).fill('typed with care')
  await page.getByRole('button', { name: 'Deny', exact: true }).click()
  await sees(t, page, 'cannot record a verdict now')
  t.equal(await page.getByRole('textbox', { name: /Comment/ }).inputValue(), 'typed with care')
  await bench.deny(id)
})

t.test('a body that was sealed under a lost key is not shown, and says so', async t => {
  const id = await bench.hold('/sealed', { body: 'secret text' })
  const page = await bench.signedIn(t, reviewer)
  await page.route(`**/hitl/${id}?*`, async route => {
    const answer = await route.fetch()
    const json = await answer.json()
    const pending = { ...json.pending, body: '[SEALED]', bodyEncoding: 'utf8' }
    await route.fulfill({ response: answer, json: { ...json, pending } })
  })
  // The request has opened by itself, before its answer was changed.
  await page.reload()
  await sees(t, page, 'sealed under a key that the gateway does not have any more')
  await eventually(
    () => page.locator('.raw').count(),
    count => count === 0,
  )
})
