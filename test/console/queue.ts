import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'
import { eventually } from '../fixtures/gateway.ts'

const bench = await startConsole(t, {
  config: { HumanInTheLoop: { FourEyes: 'owner' } },
  answer(req, res) {
    req.resume().on('end', () => res.writeHead(req.url?.startsWith('/teapot') ? 418 : 201).end('done'))
  },
})
const { reviewer, bot, hold, signedIn, call, origin, manage, waiting, deny } = bench
const statusOf = async (id: string) => JSON.parse((await manage('GET', `/hitl/${id}`)).text)

t.test('a request appears by itself, and is approved by keyboard alone', async t => {
  const page = await signedIn(t, reviewer)
  await sees(t, page, 'Nothing waits')
  const body = JSON.stringify({ amount: 250, note: 'a\u202eb' })
  const id = await hold('/v1/refunds?order=7', { headers: { 'Content-Type': 'application/json' }, body })
  await sees(t, page, '/v1/refunds')
  t.equal(await page.title(), '(1) Queue · Agent Gateway')
  // Nobody has opened anything: the first one does so by itself.
  await sees(t, page.locator('.request'), 'amount')
  for (const text of ['POST', '/v1/refunds', 'order', '7', '250', 'u{202e}', 'input.method eq "POST"']) {
    await sees(t, page.locator('.request'), text)
  }
  await assertAccessible(t, page, 'queue with an open request')
  await page.keyboard.press('a')
  const sends = page.getByRole('button', { name: 'Approve and send' })
  await sends.waitFor()
  t.equal(await page.evaluate('document.activeElement.tagName'), 'TEXTAREA', 'approving is not preselected')
  await assertAccessible(t, page, 'confirmation')
  await page.keyboard.press('Escape')
  await sends.waitFor({ state: 'detached' })
  await page.keyboard.press('a')
  await sends.waitFor()
  await page.keyboard.type('checked')
  t.equal(origin.seen.length, 0)
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await sees(t, page, 'Approved by you: completed, 201')
  t.equal(origin.seen.length, 1)
  t.match(await statusOf(id), { status: 'Approved', pending: { comment: 'checked', decidedBy: reviewer.id } })
  t.equal(await page.locator('.row').count(), 1, 'what is over stays until the reviewer goes on')
  await page.keyboard.press('Escape')
  await sees(t, page, 'Nothing waits')
})

t.test('a dialog is open, with the focus in it, before the next key', async t => {
  const page = await signedIn(t, reviewer)
  const id = await hold('/quick')
  await page.locator('.row a').click()
  await sees(t, page, 'Approve…')
  // A message comes after the microtasks of the key, in which the page is drawn, and waits for no frame.
  const press = (key: string) => `new Promise(resolve => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => resolve(document.activeElement.tagName)
    port2.postMessage('')
    document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: '${key}', bubbles: true }))
  })`
  for (const key of ['a', 'd']) {
    t.equal(await page.evaluate(press(key)), 'TEXTAREA', key)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  await deny(id)
})

t.test('a denial has a comment that the agent reads', async t => {
  const page = await signedIn(t, reviewer)
  const id = await hold('/pay')
  await page.locator('.row a').click()
  await page.getByRole('button', { name: 'Deny…' }).click()
  await page.getByRole('button', { name: /Ask the owner/ }).click()
  await page.getByRole('button', { name: 'Deny', exact: true }).click()
  await sees(t, page, 'Denied by you')
  const told = await call('GET', `/hitl/status/${id}`, { token: bot.token })
  t.match(JSON.parse(await told.text()), { status: 'Denied', request: { comment: /Ask the owner/ } })
})

t.test('of two reviewers at the same request one decides, and the other sees who', async t => {
  const second = await bench.newReviewer({ name: 'grace' })
  const [one, two] = [await signedIn(t, reviewer), await signedIn(t, second)]
  origin.seen.length = 0
  const id = await hold('/race')
  for (const page of [one, two]) {
    await page.locator('.row a').click()
    await page.getByRole('button', { name: 'Approve…' }).click()
    await page.getByRole('button', { name: 'Approve and send' }).waitFor()
  }
  // At once: a click of Playwright waits for frames, and the event of the first verdict may close the other dialog before.
  const press = `[...document.querySelectorAll('dialog .primary')].forEach(button => button.click())`
  await Promise.all([one, two].map(page => page.evaluate(press)))
  await eventually(
    () => statusOf(id),
    ({ pending }) => pending.replay === 'completed',
  )
  t.equal(origin.seen.length, 1)
  const { decidedBy } = (await statusOf(id)).pending
  const loser = decidedBy === second.id ? one : two
  const name = decidedBy === second.id ? 'grace' : 'tester'
  await loser.getByRole('dialog').waitFor({ state: 'detached' })
  await sees(t, loser.locator('.ended'), /decided first|was approved/)
  await loser
    .getByText(new RegExp(`Approved by ${name}`))
    .first()
    .waitFor()
})

t.test('a grant is spelled out, and lets the next request pass', async t => {
  const page = await signedIn(t, reviewer)
  await hold('/teapot')
  await page.locator('.row a').click()
  await page.getByRole('button', { name: 'Approve with a grant…' }).click()
  await page.getByLabel('Uses').fill('2')
  await sees(t, page, /For 60 minutes, up to 2 more requests/)
  await page.getByRole('button', { name: 'Approve and send' }).click()
  await sees(t, page, 'completed, 418')
  const next = await bench.proxy(bot.token, `${origin.url}/teapot`, { method: 'POST' })
  t.equal(next.status, 418)
})

t.test('two approvals are counted, and the names of those who gave them are shown', async t => {
  const second = await bench.newReviewer({ name: 'grace' })
  const [one, two] = [await signedIn(t, reviewer), await signedIn(t, second)]
  await hold('/two', { method: 'PUT' })
  await one.locator('.row a').click()
  await one.getByRole('button', { name: 'Approve…' }).click()
  await sees(t, one, 'Nothing is sent yet')
  await one.getByRole('button', { name: 'Approve', exact: true }).click()
  await sees(t, one, 'You approved it')
  await two.locator('.row a').click()
  await sees(t, two, '1 of 2 approvals: tester')
  await two.getByRole('button', { name: 'Approve…' }).click()
  await two.getByRole('button', { name: 'Approve and send' }).click()
  await sees(t, two, 'completed, 201')
})

t.test('several are decided at once, each with its outcome', async t => {
  const page = await signedIn(t, reviewer)
  const ids = [await hold('/same?a=1'), await hold('/same?a=2'), await hold('/other')]
  await sees(t, page, '3 waiting')
  await page.locator('.row a').first().click()
  await page.getByRole('button', { name: 'Select all 2' }).click()
  await sees(t, page, '2 selected')
  await assertAccessible(t, page, 'selection')
  await page.locator('.row input').nth(2).click()
  t.ok(await page.getByRole('button', { name: 'Approve…' }).first().isDisabled(), 'not of one group')
  await page.locator('.row input').nth(2).click()
  await deny(ids[1]!)
  await sees(t, page, '1 selected')
  await page.locator('.several').getByRole('button', { name: 'Approve…' }).click()
  await page.getByRole('button', { name: 'Approve and send 1' }).click()
  await sees(t, page, '1 request approved')
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
  await sees(t, page.locator('.request .path'), '/other')
  t.equal(await page.locator('.row').count(), 1, 'what was decided in the dialog is gone with it')
  t.match(await Promise.all(ids.map(async id => (await statusOf(id)).status)), ['Approved', 'Denied', 'Pending'])
  await deny(ids[2]!)
  await waiting(bot, 0)
})

t.test('several of an agent that is barred are left out of what is approved, say why, and can be denied', async t => {
  const page = await signedIn(t, reviewer)
  const rogue = await bench.newBot()
  const ids = [await hold('/rogue?a=1', { bot: rogue }), await hold('/rogue?a=2', { bot: rogue })]
  await manage('POST', `/agents/${rogue.id}/deactivate`)
  await sees(t, page, '2 waiting')
  for (const box of await page.locator('.row input').all()) await box.click()
  await page.locator('.several').getByRole('button', { name: 'Approve…' }).click()
  const dialog = page.getByRole('dialog')
  await sees(
    t,
    dialog,
    'The agent is inactive, so these requests cannot be approved until an admin activates the agent.',
  )
  await assertAccessible(t, page, 'several of an agent that is barred')
  t.ok(await dialog.getByRole('button', { name: 'Approve and send 0' }).isDisabled())
  const verdict = dialog.getByLabel('Verdict').first()
  t.strictSame(await verdict.locator('option').allTextContents(), ['Deny', 'Leave it waiting'])
  t.equal(await verdict.inputValue(), 'leave')
  await verdict.selectOption('deny')
  await dialog.getByRole('button', { name: 'Deny 1' }).click()
  await sees(t, page, '1 request denied')
  await dialog.getByRole('button', { name: 'Close' }).click()
  t.match(await Promise.all(ids.map(async id => (await statusOf(id)).status)), ['Denied', 'Pending'])
  await deny(ids[1]!)
})

t.test('outcomes stay on the screen when the last request of the selection is decided', async t => {
  const page = await signedIn(t, reviewer)
  const ids = [await hold('/both?a=1'), await hold('/both?a=2')]
  await sees(t, page, '2 waiting')
  for (const box of await page.locator('.row input').all()) await box.click()
  await page.locator('.several').getByRole('button', { name: 'Deny…' }).click()
  await deny(ids[1]!)
  await sees(t, page, '1 selected')
  const dialog = page.getByRole('dialog')
  await sees(t, dialog, 'Denied by')
  await page.getByRole('button', { name: 'Deny 1' }).click()
  await sees(t, page, '0 waiting')
  await sees(t, dialog, 'denied')
  await dialog.getByRole('button', { name: 'Close' }).click()
  t.equal(await page.getByText('selected').count(), 0)
})

t.test('of more than a hundred selected requests the others stay selected', async t => {
  const page = await signedIn(t, reviewer)
  // The denials cost this agent its trust.
  const many = await bench.newBot()
  for (let count = 0; count < 101; count++) await hold(`/many?a=${count}`, { bot: many })
  await sees(t, page, '101 waiting')
  await page.locator('.row a').first().click()
  await page.getByRole('button', { name: 'Select all 101' }).click()
  await page.locator('.several').getByRole('button', { name: 'Deny…' }).click()
  await sees(t, page, 'The first 100 of 101; the others stay selected')
  await page.getByRole('button', { name: 'Deny 100' }).click()
  await sees(t, page, '100 requests denied')
  await sees(t, page, '1 selected')
  await deny((await waiting(many, 1))[0]!.id)
})

t.test('own requests say why they cannot be decided', async t => {
  const both = await bench.agent({ name: 'both', roles: ['reviewer', 'agent'], policyName: 'careful' })
  const page = await signedIn(t, both)
  const id = await hold('/own', { bot: both })
  await page.locator('.row a').click()
  await sees(t, page, 'This request is your own')
  t.equal(await page.getByRole('button', { name: 'Approve…' }).count(), 0)
  await deny(id)
})

t.test('requests of the same owner say before a verdict who may decide them', async t => {
  const page = await signedIn(t, await bench.newReviewer({ name: 'kin', ownerId: 'team-a' }))
  const id = await hold('/kin')
  await page.locator('.row a').click()
  await sees(t, page.locator('.request'), 'the agent, team-a: a reviewer of another owner must decide this request.')
  for (const name of ['Approve…', 'Deny…']) {
    t.equal(await page.locator('.request').getByRole('button', { name }).count(), 0, name)
  }
  await page.locator('.row input').click()
  await page.locator('.several').getByRole('button', { name: 'Deny…' }).click()
  await sees(t, page.getByRole('dialog'), 'a reviewer of another owner must decide this request.')
  t.ok(await page.getByRole('button', { name: 'Deny 0' }).isDisabled())
  await deny(id)
})

t.test('an auditor reads and does not decide', async t => {
  const auditor = await bench.agent({ name: 'audrey', roles: ['auditor'] })
  const page = await signedIn(t, auditor)
  const id = await hold('/read')
  await page.locator('.row a').click()
  await sees(t, page, 'Verdicts need the role reviewer')
  await deny(id)
})
