/** A rule, a test or a grant from one request, and a change that is tried: what is shown is what the API says and stores. */
import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'
import { eventually } from '../fixtures/gateway.ts'

const bench = await startConsole(t)
const { origin, hold, approve, signedIn, proxy, manage, reviewer, url } = bench
const admin = await bench.agent({ name: 'ada', roles: ['admin'], ownerId: 'people' })
const condition = (field: string, value: string) => ({ field, operator: 'eq', value })
const orders = {
  name: 'orders',
  default: 'Allow',
  rules: [
    { name: 'posts', effect: 'Hitl', priority: 5, conditions: [condition('input.method', 'POST')] },
    { name: 'frozen', effect: 'Deny', priority: 5, conditions: [condition('input.body.state', 'frozen')] },
    { name: 'deletes', effect: 'Deny', conditions: [condition('input.method', 'DELETE')] },
  ],
}
await manage('POST', '/policies', orders)
const bot = await bench.agent({ name: 'shop-bot', policyName: 'orders' })
const json = { 'Content-Type': 'application/json' }
const send = async (path: string, method = 'GET') =>
  await (await proxy(bot.token, origin.url + path, { method })).body?.cancel()
const read = async (path: string) => JSON.parse((await manage('GET', path)).text)
const secret = 'Bearer sk_live_51HqLyjWDarjtT1zdp7dc'
for (const path of ['/v1/items/1', '/v1/items/2', '/v1/items/3', '/v1/a%3Cimg%20src=x%3E']) await send(path)
await send('/v1/items/4', 'DELETE')
const held = await hold('/v1/refunds/17?notify=yes', {
  bot,
  headers: { ...json, 'X-Upstream-Token': secret },
  body: '{"amount": 7, "state": "new"}',
})
await (await approve(held)).body?.cancel()
const waits = await hold('/v1/refunds/18', { bot, headers: json, body: '{"amount": 9, "state": "new"}' })
const shapesOf = async () => (await read(`/agents/${bot.id}/shapes`)).items
// The shapes of other threads come a moment later.
const shapes = await eventually(shapesOf, items => items.some(({ verdict }: { verdict: string }) => verdict !== null))

t.test(
  'a rule of a past request is what the API drafts, never wider, and opens in the editor with its test',
  async t => {
    const page = await signedIn(t, admin, { route: `/requests/${held}` })
    await page.getByRole('link', { name: 'Make from this' }).click()
    const rule = page.getByRole('region', { name: 'A rule' })
    await sees(t, rule, 'matches')
    const order = { hitlId: held, effect: 'Allow', name: 'post-v1-refunds-17', priority: 6 }
    const draft = JSON.parse((await manage('POST', '/policies/drafts', order)).text)
    t.equal(await rule.locator('pre').textContent(), draft.yaml, 'at the lowest priority at which it decides')
    await sees(t, rule, 'It is asked before stricter rules')
    t.match(await rule.locator('.notice').allTextContents(), [/frozen/])
    t.notMatch(await rule.locator('.notice').first().textContent(), /deletes/, 'no request is a POST and a DELETE')
    await sees(t, rule, '?notify, amount, state')
    const test = page.getByRole('region', { name: 'A test' })
    t.equal(await test.locator('pre').textContent(), draft.test)
    await sees(t, test, /Without x-upstream-token/)
    t.notMatch(await page.locator('main').textContent(), /sk_live/)
    await assertAccessible(t, page, 'make from a request')
    await page.getByLabel('Open segment 3').click()
    await sees(t, rule, '{id:int}')
    await page.setViewportSize({ width: 360, height: 740 })
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
    await page.setViewportSize({ width: 1280, height: 860 })
    await page.reload()
    t.ok(await page.getByLabel('Open segment 3').isChecked(), 'the address has it')
    await page.getByLabel('Name').fill('refunds-of-bot')
    await page.getByLabel('Name').press('Enter')
    await sees(t, rule.locator('pre'), 'refunds-of-bot')
    await page.getByRole('link', { name: 'Open in the editor, with its test' }).click()
    await sees(t, page.locator('.tests'), 'passes')
    const opened = JSON.parse(await page.locator('#policy-text').inputValue()).rules.at(-1)
    const wider = { ...order, name: 'refunds-of-bot', open: ['segment 3'] }
    const shown = JSON.parse((await manage('POST', '/policies/drafts', wider)).text).rule
    t.strictSame(opened, { ...shown, mode: 'shadow' })
    const text = page.locator('#policy-text')
    const edited = (await text.inputValue()).replace('"refunds-of-bot",', '"refunds-of-bot", "title": "typed",')
    await text.fill(edited)
    await page.goBack()
    await page.getByRole('link', { name: 'Open in the editor, with its test' }).click()
    await sees(t, page, 'The rule that was made is not in it')
    t.equal(await text.inputValue(), edited, 'what was typed is kept')
    await page.getByRole('button', { name: 'Discard it' }).click()
    t.strictSame(JSON.parse(await text.inputValue()).rules.at(-1), opened, 'and the rule is there without it')
    await page.locator('.primary:not(:disabled)', { hasText: 'Publish…' }).click()
    await page.getByLabel('Why, for').fill('refunds were always approved')
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await sees(t, page, 'The policy is in force.')
    t.notMatch(page.url(), /make=/, 'it is asked for once')
    const { rules } = await read('/policies/orders')
    const asText = ({ value, ...rest }: { value: unknown }) => {
      return { ...rest, value: typeof value === 'string' ? value : JSON.stringify(value) }
    }
    t.strictSame(rules.at(-1), { ...opened, conditions: opened.conditions.map(asText) })
    await page.goto(`${url}/console/#/audit`)
    await sees(t, page.locator('.record').first(), 'rule refunds-of-bot: seen 1 time on 1 day')
    await manage('PUT', '/policies/orders', orders)
  },
)

t.test(
  'a change is tried while it is typed: what changes, by which rule, and what the recording cannot tell',
  async t => {
    const page = await signedIn(t, admin, { route: '/policies/orders/edit' })
    const text = page.locator('#policy-text')
    await text.waitFor()
    const items = {
      name: 'items',
      effect: 'Hitl',
      priority: 9,
      conditions: [{ field: 'input.path', operator: 'pathMatches', value: '/v1/items/{id:int}' }],
    }
    const large = {
      name: 'large',
      effect: 'Deny',
      priority: 9,
      conditions: [{ field: 'input.body.amount', operator: 'gt', value: 8 }],
    }
    const changed = { ...orders, rules: [...orders.rules.slice(0, 2), items, large] }
    const asked: string[] = []
    page.on('request', request => {
      if (request.url().endsWith('/policies/simulate')) asked.push(request.failure()?.errorText ?? 'sent')
    })
    const typed = ['{', JSON.stringify({ ...changed, rules: [] }), JSON.stringify(changed, null, 2)]
    // Each is drawn, and the next one typed at once: a key that comes from here may take longer than the page waits.
    await page.evaluate(`(async () => {
      const area = document.querySelector('#policy-text')
      for (const text of ${JSON.stringify(typed)}) {
        area.value = text
        area.dispatchEvent(new Event('input', { bubbles: true }))
        await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)))
      }
    })()`)
    const trial = page.getByRole('region', { name: 'Try it on what was recorded' })
    await sees(t, trial, 'Of the text as it stands')
    t.equal(asked.length, 1, 'texts that were typed over are not tried')
    const answer = JSON.parse((await manage('POST', '/policies/simulate', { policy: changed })).text)
    const count = (one: readonly { readonly count: number }[]) => one.reduce((sum, { count }) => sum + count, 0)
    const all = count(answer.changes) + answer.same + answer.unknown
    t.match(await trial.locator('strong').allTextContents(), [count(answer.changes), answer.same, answer.unknown])
    await sees(t, trial, `Of ${all} recorded requests of 1 agent`)
    const rows = trial.getByRole('list', { name: 'Decisions that change' }).locator('> li')
    t.equal(await rows.count(), answer.changes.length)
    for (const [at, { before, after, rule, count }] of answer.changes.entries()) {
      const said = await rows.nth(at).textContent()
      t.match(said, new RegExp(`${before} → ${after}by ${rule}.*${count} request`), said ?? '')
    }
    t.match(answer.changes, [
      { before: 'Allow', after: 'Hitl', count: 3 },
      { before: 'Deny', after: 'Hitl' },
    ])
    t.match(await rows.locator('.mark.warn').allTextContents(), ['milder'])
    const unknown = trial.getByRole('region', { name: 'What the recording cannot tell' })
    t.ok(answer.unknown > 0)
    await sees(t, unknown, 'input.body.amount')
    const difference = trial.getByRole('list', { name: 'Requests that get a milder decision' })
    await sees(t, difference, 'before by deletes')
    await assertAccessible(t, page, 'a change that is tried')
    await difference.getByRole('button', { name: 'Add as a test' }).first().click()
    t.equal(await page.getByLabel('Method').inputValue(), 'DELETE')
    await page.getByLabel('Must be').selectOption('Deny')
    await sees(t, page.locator('.tests'), 'fails')
    await page.getByLabel('The whole text').check()
    t.equal((await page.locator('.diff').textContent())?.match(/"name": "posts"/g)?.length, 1, 'unchanged lines too')
    await page.setViewportSize({ width: 360, height: 740 })
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
    await rows.first().getByRole('link').first().click()
    await sees(t, page.getByRole('region', { name: 'A rule' }), 'matches 3 recorded requests')
    await page.goBack()
    await text.waitFor()
    t.equal(await text.inputValue(), JSON.stringify(changed, null, 2), 'what was typed is there')
  },
)

t.test('rules in shadow are tried as if they decided, and a new policy on the requests of an agent', async t => {
  const page = await signedIn(t, admin, { route: '/new-policy' })
  const trial = page.getByRole('region', { name: 'Try it on what was recorded' })
  await sees(t, trial, 'Choose one whose requests to decide')
  const text = page.locator('#policy-text')
  const rules = [{ name: 'none', effect: 'Deny', mode: 'shadow', conditions: [] }]
  await text.fill(JSON.stringify({ name: 'my-policy', default: 'Allow', rules }))
  await page.getByLabel('On the requests of').selectOption('shop-bot')
  await sees(t, trial, 'Of the text as it stands')
  const list = trial.getByRole('list', { name: 'Decisions that change' })
  await sees(t, list, 'by the default')
  await page.getByLabel('As if rules in shadow decided').check()
  await sees(t, list, 'by none')
})

t.test('from the shapes of an agent, by keyboard alone; names are text, and what cannot be made is said', async t => {
  const page = await signedIn(t, admin, { route: `/agents/${bot.id}` })
  const what = page.getByRole('region', { name: 'What it does' })
  await sees(t, what, '/v1/a%3Cimg%20src=x%3E')
  const made = shapes.filter(({ unfit }: { unfit: string | null }) => unfit === null)
  t.equal(await what.getByRole('link', { name: 'Make from this' }).count(), made.length)
  await sees(t, what, 'no rule: a body that was not recorded')
  const first = what.getByRole('row', { name: '/v1/items/{int}' }).filter({ hasText: 'GET' }).getByRole('link')
  await first.focus()
  await page.keyboard.press('Enter')
  const rule = page.getByRole('region', { name: 'A rule' })
  await sees(t, rule, 'matches 3 recorded requests')
  await sees(t, page.getByRole('region', { name: 'A grant' }), 'A grant comes from one approved request')
  await page.getByLabel('Open method').focus()
  await page.keyboard.press('Space')
  await sees(t, rule, ', 1 of them denied')
  t.ok(await page.getByLabel('Open method').isChecked())
  await sees(t, rule.locator('pre'), '/v1/items/{id:int}')
  await page.goto(`${url}/console/#/make?agent=${bot.id}&shape=${'x'.repeat(22)}`)
  await sees(t, page.getByRole('alert'), 'must be the id of a recorded shape')
  await page.goto(`${url}/console/#/make`)
  await sees(t, page, 'There is no request to make something from')
})

t.test('a grant has the bounds that were shown; what waits has it with its approval', async t => {
  const page = await signedIn(t, reviewer, { route: `/make?hitl=${held}` })
  const grant = page.getByRole('region', { name: 'A grant' })
  await sees(t, grant, /up to 10 more requests of shop-bot .*POST \S+\/v1\/refunds\/17, /)
  await sees(t, page, 'Give it to somebody who may change policies.')
  t.equal(await page.getByText('In the policy of the agent').count(), 0, 'a reviewer sees nothing of the other rules')
  await assertAccessible(t, page, 'make, as a reviewer')
  await grant.getByRole('button', { name: 'Make the grant…' }).click()
  await page.getByRole('button', { name: 'Give the grant' }).click()
  await sees(t, page, 'The grant is in force.')
  t.match(await read('/hitl/grants'), [
    { method: 'POST', origin: origin.url, path: '/v1/refunds/17', maxUses: 10, rule: 'posts', hitlId: held },
  ])
  await page.goto(`${url}/console/#/make?hitl=${waits}`)
  await sees(t, grant, 'whoever approves it may give the grant')
})

t.test('a request that was typed and explained gives a rule, too, and is gone after a reload', async t => {
  const page = await signedIn(t, admin, { route: '/policies/orders' })
  await page.getByLabel('URL').fill('https://api.example/v1/orders')
  await page.keyboard.press('Enter')
  await page.getByLabel(/Make a rule or a test from this/).selectOption('shop-bot')
  await sees(t, page.getByRole('region', { name: 'A rule' }).locator('pre'), 'https://api.example')
  t.notMatch(page.url(), /orders/, 'nothing of it is in the address')
  await page.reload()
  await sees(t, page, 'There is no request to make something from')
})

t.test('a proposal opens in the editor, and an admin has whole requests kept for a day', async t => {
  const page = await signedIn(t, admin, { route: `/agents/${bot.id}` })
  await page.getByRole('button', { name: 'Propose a new policy' }).click()
  await page.getByRole('link', { name: 'Open in the editor' }).click()
  const proposed = JSON.parse((await manage('POST', '/policies/propose', { agentIds: [bot.id], mode: 'learn' })).text)
  t.strictSame(JSON.parse(await page.locator('#policy-text').inputValue()), proposed.policy)
  await sees(t, page.getByRole('region', { name: 'Try it on what was recorded' }), 'Of the text as it stands')
  await page.goto(`${url}/console/#/agents/${bot.id}`)
  await page.getByRole('button', { name: 'Keep whole requests for a time…' }).click()
  await assertAccessible(t, page, 'keeping whole requests')
  await page.getByRole('button', { name: 'Keep them' }).click()
  await sees(t, page, /Whole requests are kept, sealed, until/)
  t.match((await read(`/agents/${bot.id}`)).recording, { mode: 'samples' })
  await page.getByRole('button', { name: 'End it…' }).click()
  await page.getByRole('button', { name: 'End it', exact: true }).click()
  await page.getByRole('button', { name: 'Keep whole requests for a time…' }).waitFor()
  t.equal((await read(`/agents/${bot.id}`)).recording, null)
})
