import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'

const bench = await startConsole(t)
const { bot, reviewer, origin, hold, signedIn, deny, proxy, manage } = bench
const author = await bench.agent({ name: 'audrey', roles: ['auditor'], ownerId: 'people' })
await manage('POST', '/policies', {
  name: 'orders',
  default: 'Deny',
  rules: [
    { name: 'reads', effect: 'Allow', conditions: [{ field: 'input.method', operator: 'eq', value: 'GET' }] },
    {
      name: 'large',
      effect: 'Hitl',
      priority: 10,
      conditions: [
        {
          any: [
            { field: 'input.body.amount', operator: 'gt', value: 100 },
            { field: 'input.headers.x-risk', operator: 'eq', value: 'yes' },
            { field: 'input.method', operator: 'in', value: ['PUT', 'PATCH'] },
          ],
        },
      ],
    },
    { name: 'trial', effect: 'Deny', mode: 'shadow', conditions: [] },
  ],
})

t.test('a policy shows its rules in the order in which they are asked, and how often each decided', async t => {
  for (const method of ['GET', 'DELETE', 'DELETE']) {
    await (await proxy(bot.token, origin.url, { method })).body?.cancel()
  }
  const page = await signedIn(t, author, { route: '/policies' })
  await page.getByRole('link', { name: 'careful' }).waitFor()
  await assertAccessible(t, page, 'policies')
  await page.getByRole('link', { name: 'careful' }).click()
  await sees(t, page, 'decided 2 requests')
  await sees(t, page, 'input.method eq "DELETE"')
  await page.goto(`${bench.url}/console/#/policies/orders`)
  await sees(t, page, 'any of')
  await sees(t, page, 'input.method in ["PUT","PATCH"]')
  t.match(await page.locator('.rule-head strong').allTextContents(), ['large', 'trial', 'reads', 'Otherwise'])
  await assertAccessible(t, page, 'one policy')
})

t.test('a request that is typed is explained rule by rule, with the values that were seen', async t => {
  const page = await signedIn(t, author, { route: '/policies/orders' })
  await page.getByLabel('Method').fill('post')
  await page.getByLabel('URL').fill('https://api.example/v1/orders')
  await page.getByLabel('Header fields').fill('Content-Type: application/json\nX-Risk: no')
  await page.getByLabel('Body').fill('{"amount": 250}')
  await page.getByRole('button', { name: 'Explain' }).click()
  const explained = page.locator('.explained')
  for (const text of ['Hitl', 'decides', 'input.body.amount gt "100"', 'was 250', 'was "no"', 'does not hold']) {
    await sees(t, explained, text)
  }
  await assertAccessible(t, page, 'explanation')
  await page.getByLabel('URL').fill('ftp://api.example')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').waitFor()
})

t.test('a request is taken from the history', async t => {
  const headers = { 'Content-Type': 'application/json' }
  const id = await hold('/refunds', { headers, body: '{"amount": 7}' })
  await deny(id)
  const page = await signedIn(t, author, { route: '/history' })
  await page.getByRole('link', { name: 'Explain' }).click()
  await sees(t, page.locator('.explained'), 'rule "posts"')
  t.equal(await page.getByLabel('Body').inputValue(), '{"amount": 7}')
  t.match(await page.getByLabel('URL').inputValue(), /\/refunds$/)
})

t.test('a policy is readable on a phone, and not for reviewers', async t => {
  const page = await signedIn(t, author, { route: '/policies/orders', viewport: { width: 360, height: 720 } })
  await sees(t, page, 'any of')
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
  const other = await signedIn(t, reviewer, { route: '/policies' })
  await sees(t, other, 'This page needs another role')
})

t.test('an admin edits a policy: mistakes at their places, tests beside it, the difference, a comment', async t => {
  const admin = await bench.agent({ name: 'ada', roles: ['admin'], ownerId: 'people' })
  const page = await signedIn(t, admin, { route: '/policies/orders' })
  await page.getByRole('link', { name: 'Edit' }).click()
  const text = page.locator('#policy-text')
  const document = await text.inputValue()
  t.notMatch(document, /CreatedOn|version|hits/)
  t.ok(await page.getByRole('button', { name: 'Publish…' }).isDisabled(), 'nothing has changed')
  await text.fill(document.replace('"input.method"', '"input.metod"'))
  await sees(t, page.locator('.editor-notes'), 'did you mean input.method')
  await page.locator('.editor-notes button').first().click()
  t.equal(await page.evaluate('document.activeElement.id'), 'policy-text', 'the cursor is where the mistake is')
  await text.fill(document.replace('"Allow"', '"Deny"'))
  await page.getByRole('button', { name: 'Add a test' }).click()
  await page.getByLabel('URL').fill('https://api.example/x')
  await page.getByLabel('Must be').selectOption('Allow')
  await sees(t, page, 'fails')
  await page.getByLabel('Must be').selectOption('Deny')
  await sees(t, page, 'passes')
  await sees(t, page.locator('.diff ins'), 'Deny')
  await assertAccessible(t, page, 'the editor')
  await text.fill(document.replace('"Allow"', '"D"'))
  await page.evaluate(`(() => {
    const area = document.getElementById('policy-text')
    const behind = area.value.indexOf('"D"') + 2
    area.setSelectionRange(behind, behind)
  })()`)
  await text.press('e')
  await sees(t, page.locator('.words'), 'Deny')
  await text.press('Enter')
  t.equal(await text.inputValue(), document.replace('"Allow"', '"Deny"'))
  await page.locator('.primary:not(:disabled)', { hasText: 'Publish…' }).click()
  await assertAccessible(t, page, 'publishing')
  await page.getByLabel('Why, for').fill('nothing passes')
  await page.getByRole('button', { name: 'Publish', exact: true }).click()
  await sees(t, page, 'The policy is in force.')
  const { rules } = JSON.parse((await manage('GET', '/policies/orders')).text)
  t.match(rules[0], { name: 'reads', effect: 'Deny' })
  const [entry] = JSON.parse((await manage('GET', '/audit?action=policy.replace&subject=orders')).text).items
  t.match(entry, { actor: admin.id, details: { comment: 'nothing passes' } })
  t.equal(await page.getByLabel('URL').inputValue(), 'https://api.example/x', 'the test is there for the next change')
})

t.test('an author who leaves the editor loses nothing, and reads so', async t => {
  const admin = await bench.agent({ name: 'ada', roles: ['admin'], ownerId: 'people' })
  const page = await signedIn(t, admin, { route: '/policies/orders/edit' })
  const text = page.locator('#policy-text')
  const kept = page.getByText('This is what you typed before.')
  const before = await text.inputValue()
  const typed = before.replace('large', 'larger')
  await text.fill(typed)
  await page.getByRole('button', { name: 'Add a test' }).click()
  await page.getByLabel('URL').fill('https://api.example/kept')
  const comesBack = async () => {
    await sees(t, page.locator('.toast'), 'What you changed in orders is not published.')
    await page.goto(`${bench.url}/console/#/policies/orders/edit`)
    await kept.waitFor()
    t.equal(await text.inputValue(), typed)
    t.equal(await page.getByLabel('URL').inputValue(), 'https://api.example/kept')
    await page.getByRole('button', { name: 'Dismiss' }).click()
  }
  await page.getByRole('link', { name: 'As it is in force' }).click()
  await comesBack()
  await page.keyboard.press('Control+k')
  await page.keyboard.type('page history')
  await page.keyboard.press('Enter')
  await comesBack()
  await page.goBack()
  await comesBack()
  await assertAccessible(t, page, 'an editor with what was typed before')
  const [asked] = await Promise.all([page.waitForEvent('dialog'), page.close({ runBeforeUnload: true })])
  t.equal(asked.type(), 'beforeunload')
  await asked.dismiss()
  t.equal(await page.getByText('Another version was published since').count(), 0)
  const {
    CreatedOn: _,
    version: __,
    source: ___,
    hits: ____,
    shadow: _____,
    ...document
  } = JSON.parse((await manage('GET', '/policies/orders')).text)
  await manage('PUT', '/policies/orders', { ...document, description: 'by somebody else' })
  await page.getByRole('link', { name: 'As it is in force' }).click()
  await comesBack()
  await sees(t, page, 'Another version was published since you began')
  await page.getByRole('button', { name: 'Discard it' }).click()
  await kept.waitFor({ state: 'detached' })
  t.match(await text.inputValue(), 'by somebody else')
  await page.getByRole('link', { name: 'As it is in force' }).click()
  await page.getByRole('link', { name: 'Edit' }).waitFor()
  t.equal(await page.locator('.toast').count(), 0, 'nothing is left to be kept')
})

t.test('a text is kept, and nothing is done, when somebody else published meanwhile', async t => {
  const admin = await bench.agent({ name: 'ada', roles: ['admin'], ownerId: 'people' })
  const page = await signedIn(t, admin, { route: '/policies/orders/edit' })
  const text = page.locator('#policy-text')
  const typed = (await text.inputValue()).replace('by somebody else', 'by me')
  await text.fill(typed)
  await page.locator('.primary:not(:disabled)', { hasText: 'Publish…' }).click()
  await page.getByLabel('Why, for').fill('mine')
  const { default: other, rules } = JSON.parse((await manage('GET', '/policies/orders')).text)
  await manage('PUT', '/policies/orders', { description: 'a moment earlier', default: other, rules })
  await page.getByRole('button', { name: 'Publish', exact: true }).click()
  await sees(t, page, 'Somebody published another version meanwhile')
  t.equal(await text.inputValue(), typed)
  t.equal(JSON.parse((await manage('GET', '/policies/orders')).text).description, 'a moment earlier')
})

t.test('a policy of the settings is offered as a patch, and an auditor tries a change out', async t => {
  const page = await signedIn(t, author, { route: '/policies/careful' })
  await page.getByRole('link', { name: 'Try a change' }).click()
  await sees(t, page, 'This policy comes from the settings')
  t.equal(await page.getByRole('button', { name: 'Publish…' }).count(), 0)
  const text = page.locator('#policy-text')
  await text.fill((await text.inputValue()).replace('deletes', 'removals'))
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download the patch' }).click(),
  ])
  t.equal(saved.suggestedFilename(), 'careful.patch')
})

t.test('a new policy is written from a template', async t => {
  const admin = await bench.agent({ name: 'ada', roles: ['admin'], ownerId: 'people' })
  const page = await signedIn(t, admin, { route: '/policies' })
  await page.getByRole('link', { name: 'New policy' }).click()
  await page.locator('.primary:not(:disabled)', { hasText: 'Publish…' }).click()
  await page.getByRole('button', { name: 'Publish', exact: true }).click()
  await page.waitForURL('**/#/policies/my-policy')
  await sees(t, page.locator('.record').first(), 'read')
})
