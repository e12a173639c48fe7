/** Budgets in the console: bars, and the raise of an approval. */
import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'
import { eventually, type TestAgent } from '../fixtures/gateway.ts'

const bench = await startConsole(t, {
  config: {
    Budgets: [
      { Name: 'calls', Unit: 'Calls', Limit: 2, Per: 'Month', Owners: ['spenders'], AtLimit: 'Hitl' },
      { Name: 'team', Of: 'Owner', Unit: 'Calls', Limit: 50, Per: 'Month', Owners: ['spenders'] },
      { Name: 'desk', Of: 'Owner', Unit: 'Calls', Limit: 1, Per: 'Month', Owners: ['desk'], AtLimit: 'Hitl' },
    ],
  },
})
const { reviewer, origin, signedIn, proxy, manage } = bench
const admin = await bench.agent({ name: 'ada', roles: ['admin'], ownerId: 'people' })
const spender = await bench.agent({ name: 'spender', ownerId: 'spenders' })
/** Again while a busy machine keeps the store for over a second: budgets do not wait for longer. */
const callOf = ({ token }: TestAgent) =>
  eventually(
    () => proxy(token, `${origin.url}/x`, { headers: { Prefer: 'wait=0' } }),
    ({ status }) => status !== 503,
  )
const get = () => callOf(spender)
for (let calls = 0; calls < 2; calls++) t.equal((await get()).status, 200)
await eventually(
  async () => JSON.parse((await manage('GET', `/agents/${spender.id}/budgets`)).text),
  ([calls]) => calls.spent === 2,
)

t.test('the page of an agent has a bar for each of its budgets', async t => {
  const page = await signedIn(t, reviewer, { route: `/agents/${spender.id}`, viewport: { width: 360, height: 1_600 } })
  for (const text of ['2 calls of 2 calls', '2 calls of 50 calls', 'of its owner']) await sees(t, page, text)
  t.equal(await page.getByRole('img', { name: 'calls: 100 % spent, 0 % reserved' }).count(), 1)
  await assertAccessible(t, page, 'budgets of an agent')
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
})

t.test('an agent without budgets has no bars', async t => {
  const page = await signedIn(t, reviewer, { route: `/agents/${bench.bot.id}` })
  await sees(t, page, 'Last verdicts')
  t.equal(await page.getByRole('heading', { name: 'Budgets' }).count(), 0)
})

t.test('an approval at the limit can raise the budget', async t => {
  const held = await get()
  t.equal(held.status, 202)
  const page = await signedIn(t, reviewer)
  await bench.openRequest(page, held.headers.get('gateway-hitl-id') ?? '')
  for (const text of ['budget calls: 2 of 2 calls spent', '2 calls of 2 calls']) await sees(t, page, text)
  await assertAccessible(t, page, 'held at a limit')
  await page.getByRole('button', { name: 'Approve…', exact: true }).click()
  await page.getByLabel('Raise the budget calls by').fill('1')
  await assertAccessible(t, page, 'raising a budget')
  await page.getByRole('button', { name: 'Approve and send' }).click()
  const [calls] = await eventually(
    async () => JSON.parse((await manage('GET', `/agents/${spender.id}/budgets`)).text),
    ([calls]) => calls.raised === 1 && calls.spent === 3,
  )
  t.equal(calls.limit, 2)
})

t.test('budgets are listed, and who has one, with how full it is', async t => {
  // A gateway tells the store what was spent a moment later.
  await eventually(
    async () => JSON.parse((await manage('GET', '/budgets')).text) as { name: string; highestShare: number }[],
    items => items.find(({ name }) => name === 'calls')?.highestShare === 1,
  )
  const page = await signedIn(t, reviewer, { route: '/budgets', viewport: { width: 360, height: 900 } })
  await sees(t, page, 'of each agent')
  await page.getByRole('img', { name: 'calls, the fullest: 100 % spent' }).waitFor()
  await sees(t, page, 'the fullest at 100 %')
  await assertAccessible(t, page, 'budgets')
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
  await page.getByRole('link', { name: 'calls' }).click()
  await page.getByRole('heading', { level: 1, name: 'calls' }).waitFor()
  await page.getByRole('link', { name: 'spender' }).waitFor()
  await assertAccessible(t, page, 'who has a budget')
  t.equal(await page.getByRole('button', { name: /^Raise/ }).count(), 0, 'only admins raise here')
  await page.goto(`${bench.url}/console/#/budgets/team`)
  await sees(t, page, 'spenders')
})

t.test('an admin raises the budget of one who has it, and reads why another raise is refused', async t => {
  const page = await signedIn(t, admin, { route: '/budgets/calls' })
  const before = JSON.parse((await manage('GET', '/budgets/calls')).text).items[0].raised
  const raise = async (amount: string) => {
    await page.getByRole('button', { name: 'Raise calls of spender' }).click()
    await page.getByLabel('By, in calls').fill(amount)
    await page.getByLabel('Why, for the audit trail').fill('the migration')
    await page.getByRole('button', { name: 'Raise', exact: true }).click()
  }
  await raise('4')
  await sees(t, page, `raised by ${before + 4} calls`)
  await raise('1000')
  await sees(t, page, /at most 10 times the limit/)
  await assertAccessible(t, page, 'a raise that was refused')
})

t.test('who may not raise a budget reads why before a form is sent', async t => {
  const lead = await bench.agent({ name: 'lead', roles: ['admin'], ownerId: 'desk' })
  const clerk = await bench.agent({ name: 'clerk', ownerId: 'desk' })
  t.equal((await callOf(clerk)).status, 200)
  const held = await callOf(clerk)
  t.equal(held.status, 202)
  const page = await signedIn(t, lead, { route: '/budgets/desk' })
  const why = 'You have the same owner, desk: an admin of another owner must raise it.'
  await sees(t, page, why)
  t.equal(await page.getByRole('button', { name: /^Raise/ }).count(), 0)
  await bench.openRequest(page, held.headers.get('gateway-hitl-id') ?? '')
  await page.getByRole('button', { name: 'Approve…', exact: true }).click()
  await sees(t, page, `The budget desk is used up. ${why}`)
  t.equal(await page.getByLabel('Raise the budget desk by').count(), 0)
})

t.test('the overview shows who spends most', async t => {
  const page = await signedIn(t, reviewer, { route: '/overview' })
  const section = page.getByRole('region', { name: 'Who spends most of calls' })
  await sees(t, section, 'spender')
})
