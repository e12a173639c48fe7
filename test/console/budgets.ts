/** Budgets in the console: bars, and the raise of an approval. */
import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'
import { eventually } from '../fixtures/gateway.ts'

const bench = await startConsole(t, {
  config: {
    Budgets: [
      { Name: 'calls', Unit: 'Calls', Limit: 2, Per: 'Month', Owners: ['spenders'], AtLimit: 'Hitl' },
      { Name: 'team', Of: 'Owner', Unit: 'Calls', Limit: 50, Per: 'Month', Owners: ['spenders'] },
    ],
  },
})
const { reviewer, origin, signedIn, proxy, manage } = bench
const spender = await bench.agent({ name: 'spender', ownerId: 'spenders' })
const get = () => proxy(spender.token, `${origin.url}/x`, { headers: { Prefer: 'wait=0' } })
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
  t.equal(await page.getByText('Budgets').count(), 0)
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
