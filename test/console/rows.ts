/** Lists say what each request would do, and a verdict on several is given on what differs in them. */
import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'
import { eventually } from '../fixtures/gateway.ts'

const condition = (field: string, value: string) => ({ field, operator: 'eq', value })
const policy = {
  name: 'refunds',
  default: 'Allow',
  rules: [
    {
      name: 'refund',
      effect: 'Hitl',
      title: 'Refund {input.body.amount} to {input.body.customer}',
      conditions: [condition('input.path', '/refunds')],
    },
    { name: 'other', effect: 'Hitl', conditions: [condition('input.method', 'POST')] },
  ],
}
const bench = await startConsole(t, { config: { Policies: [policy] } })
const { reviewer, signedIn, manage, url } = bench
// A call of a model waits unless it is told not to.
const headers = { 'Content-Type': 'application/json', Prefer: 'respond-async' }
const newBot = () => bench.agent({ policyName: 'refunds', name: 'support-bot' })
const bot = await newBot()

const hold = (path: string, body: unknown, by = bot) =>
  bench.hold(path, { bot: by, headers, body: typeof body === 'string' ? body : JSON.stringify(body) })
const tool = (name: string) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } })

t.test('rows name title, tool, operation or model, and the filter finds them', async t => {
  const ids = [
    await hold('/refunds', { amount: 250, customer: '\u202ec-1' }),
    await hold('/mcp', tool('close_account')),
    await hold('/graphql', { query: 'mutation X { deleteUser(id: 1) { id } }' }),
    await hold('/v1/chat/completions', { model: 'model-x', messages: [{ role: 'user', content: 'hi' }] }),
    await hold('/plain', {}),
  ]
  const page = await signedIn(t, reviewer)
  await sees(t, page, '5 waiting')
  await page.locator('.row-what').nth(4).waitFor()
  const names = await page.locator('.row-what').allTextContents()
  t.match(names, [/^Refund 250 to u\{202e\}c-1$/, /close_account/, /deleteUser/, /model-x/, /^POST .*\/plain$/])
  for (const [word, name] of [
    ['refund 250', 'Refund 250'],
    ['close_account', 'close_account'],
    ['deleteuser', 'deleteUser'],
    ['model-x', 'model-x'],
  ] as const) {
    await page.getByLabel(/^Filter by/).fill(word)
    await sees(t, page, '1 of 5 waiting')
    await sees(t, page.locator('.row'), name)
  }
  await page.getByLabel(/^Filter by/).fill('')
  await sees(t, page.locator('.request .what'), /^Refund 250 to/)
  await sees(t, page.locator('.row').first(), 'support-bot, ')
  await sees(t, page.locator('.row').first(), / left · risk 0\.\d\d/)
  await assertAccessible(t, page, 'a request with a title')
  for (const id of ids) await bench.approve(id)
})

t.test('rows are put in order and in groups by the link, and a group or a range is selected at once', async t => {
  const other = await bench.agent({ policyName: 'refunds', name: 'sales bot' })
  const ids = [
    await hold('/refunds', { amount: 1 }),
    await hold('/mcp', tool('a'), other),
    await hold('/refunds', { amount: 2 }, other),
    await hold('/plain', {}),
  ]
  const page = await signedIn(t, reviewer, { route: '/?group=agent&sort=risk' })
  const list = page.locator('.group-head, .row-what')
  await page.locator('.group-head').first().waitFor()
  const names = (await list.allTextContents()).map(text => text.replace('SelectOnly these', ''))
  t.match(names, ['support-bot2', /Refund 1|POST/, /Refund 1|POST/, 'sales bot2', /tools|Refund 2/, /tools|Refund 2/])
  await assertAccessible(t, page, 'groups')
  await page.setViewportSize({ width: 1280, height: 360 })
  for (const key of ['j', 'j', 'j', 'k', 'k', 'k']) await page.keyboard.press(key)
  await eventually(
    () => page.evaluate(`document.querySelector('.list-frame').scrollTop`),
    top => top === 0,
  )
  await page.setViewportSize({ width: 1280, height: 720 })
  ids.push(await hold('/refunds', { amount: 3 }))
  await sees(t, page.locator('.group-head').last(), 'Arrived since')
  t.equal(
    await page.locator('.row-what').last().textContent(),
    'Refund 3 to (missing)',
    'it is not put between the others',
  )
  await page.getByRole('button', { name: 'Sort in' }).click()
  await sees(t, page.locator('.group-head').first(), '3')
  await page.locator('.group-head').last().getByRole('button', { name: 'Select' }).click()
  await sees(t, page, '2 selected')
  await page.getByRole('button', { name: 'Clear', exact: true }).click()
  await page.getByLabel('Groups').selectOption('none')
  await page.getByLabel('Order').selectOption('age')
  await page.locator('.row input').nth(1).click()
  await page
    .locator('.row input')
    .nth(3)
    .click({ modifiers: ['Shift'] })
  await sees(t, page, '3 selected')
  await page
    .locator('.row input')
    .nth(2)
    .click({ modifiers: ['Shift'] })
  await sees(t, page, '1 selected')
  await page.getByLabel(/^Filter by/).fill('agent:"sales bot" rule:refund')
  await sees(t, page, '1 of 5 waiting')
  await page.reload()
  await sees(t, page, '1 of 5 waiting')
  for (const id of ids) await bench.approve(id)
})

t.test('requests that the person has not opened are marked, in all tabs of that person alone', async t => {
  const [one, two] = [await hold('/refunds', { amount: 1 }), await hold('/refunds', { amount: 2 })]
  const page = await signedIn(t, reviewer)
  const other = await signedIn(t, await bench.newReviewer({ name: 'grace' }))
  await sees(t, other, '2 waiting')
  // The first one opens by itself.
  await sees(t, page.locator('.row').first(), /risk 0\.\d\d$/)
  t.match(await page.locator('.row').nth(1).textContent(), /not opened$/)
  const link = page.locator('.row a').nth(1)
  const [tab] = await Promise.all([page.context().waitForEvent('page'), link.click({ modifiers: ['Control'] })])
  await tab.locator('.request .digest').waitFor()
  await eventually(
    () => page.getByText('not opened').count(),
    count => count === 0,
  )
  await eventually(
    () => tab.getByText('not opened').count(),
    count => count === 0,
  )
  t.equal(await other.getByText('not opened').count(), 1, 'another person has not opened the second')
  await page.reload()
  await sees(t, page, '2 waiting')
  t.equal(await page.getByText('not opened').count(), 0)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.locator('.gate').waitFor()
  t.equal(await page.evaluate("sessionStorage.getItem('opened')"), null, 'it goes with the person')
  for (const id of [one, two]) await bench.approve(id)
})

t.test('the dialog for several shows each value that differs, and what was not opened', async t => {
  for (const amount of [100, 250, 900]) await hold(`/refunds?order=${amount}`, { amount, customer: 'c', note: 'same' })
  const page = await signedIn(t, reviewer)
  await page.getByRole('button', { name: 'Select all 3' }).click()
  await sees(t, page, 'You have not opened 2 of them.')
  await page.locator('.several').getByRole('button', { name: 'Approve…' }).click()
  const dialog = page.getByRole('dialog')
  await sees(t, dialog, 'You have not opened 2 of 3.')
  await sees(t, dialog, 'The same: header fields.')
  t.strictSame(await dialog.locator('thead th').allTextContents(), [
    'Request',
    'Verdict',
    'Query: order',
    'Body: amount',
  ])
  const lines = await dialog.locator('tbody tr').allTextContents()
  const told = lines.map(text => text.replace('ApproveDenyLeave it waiting', '|'))
  t.match(told, [/^Refund 100 to c\|100100$/, /^Refund 250 to cnot opened\|250250$/, /^Refund 900 to cnot opened\|9/])
  await assertAccessible(t, page, 'the dialog for several')
  await dialog.getByLabel('Verdict').nth(1).selectOption('Leave it waiting')
  await dialog.getByLabel('Verdict').nth(2).selectOption('Deny')
  await dialog.getByRole('textbox').fill('the last one is too much')
  await page.getByRole('button', { name: 'Approve and send 1, deny 1' }).waitFor()
  await page.keyboard.press('Control+Enter')
  await sees(t, page, '1 request approved, 1 request denied')
  const sent = bench.origin.seen.filter(({ target }) => target.startsWith('/refunds?order='))
  t.strictSame(
    sent.map(({ target }) => target),
    ['/refunds?order=100'],
  )
  const [left] = JSON.parse((await manage('GET', `/hitl?agentId=${bot.id}`)).text)
  t.match(left, { title: 'Refund 250 to c' }, 'an exception waits on')
  await bench.approve(left.id)
})

t.test('what is decided elsewhere while the dialog is open is left out, and shown so', async t => {
  const ids = [await hold('/mcp', tool('a')), await hold('/mcp', tool('b')), await hold('/mcp', tool('c'))]
  const page = await signedIn(t, reviewer)
  await sees(t, page, '3 waiting')
  for (const box of await page.locator('.row input').all()) await box.click()
  await page.locator('.several').getByRole('button', { name: 'Deny…' }).click()
  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: 'Deny 3' }).waitFor()
  await bench.call('DELETE', `/hitl/${ids[1]}`, { token: bot.token })
  await sees(t, dialog, 'Withdrawn')
  await page.getByRole('button', { name: 'Deny 2' }).waitFor()
  for (const id of [ids[0]!, ids[2]!]) await bench.approve(id)
  await sees(t, dialog, 'None of them waits any more')
  t.equal(await dialog.getByRole('button', { name: /Deny/ }).count(), 0)
  await page.keyboard.press('Control+Enter')
  await dialog.getByRole('button', { name: 'Close' }).click()
  const statuses = ids.map(async id => JSON.parse((await manage('GET', `/hitl/${id}`)).text).status)
  t.strictSame(await Promise.all(statuses), ['Approved', 'Withdrawn', 'Approved'])
})

t.test('bodies that differ in spelling alone, or that are too large to compare, are not called the same', async t => {
  const second = await newBot()
  const ids = [await hold('/plain', '{"a":1}', second), await hold('/plain', '{"a": 1}', second)]
  const page = await signedIn(t, reviewer)
  await page.goto(`${url}/console/#/?id=${ids[0]}`)
  await page.getByRole('button', { name: 'Select all 2' }).click()
  await page.locator('.several').getByRole('button', { name: 'Approve…' }).click()
  await sees(t, page, 'Body: They differ in spaces, in escapes or in the order of names only.')
  await page.keyboard.press('Escape')
  const large = (last: string) => `"${'x'.repeat(1_000_000)}${last}"`
  const other = await newBot()
  for (const last of ['a', 'b']) await hold('/large', large(last), other)
  await page.route('**/hitl?limit=*', async route => {
    const answer = await route.fetch()
    const list = (await answer.json()) as object[]
    await route.fulfill({ response: answer, json: list.map(line => ({ ...line, bodyBytes: 9_000_000 })) })
  })
  await page.reload()
  await page.locator('.row', { hasText: '/large' }).first().locator('a').click()
  await page.getByRole('button', { name: 'Select all 2' }).click()
  await page.locator('.several').getByRole('button', { name: 'Approve…' }).click()
  await sees(t, page, 'What differs is not known. Their bodies are more than 16.0 MiB in all.')
  t.equal(await page.getByText('The same').count(), 0)
})
