import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'
import { eventually } from '../fixtures/gateway.ts'

const bench = await startConsole(t)
const { bot, reviewer, origin, signedIn, proxy, manage } = bench
const author = await bench.agent({ name: 'audrey', roles: ['auditor'], ownerId: 'people' })
for (const path of ['/v1/items/1', '/v1/items/2', '/v1/items/3', '/v1/a<b>bold']) {
  await (await proxy(bot.token, origin.url + path)).body?.cancel()
}
// The shapes of other threads and gateways come a moment later.
await eventually(
  async () => JSON.parse((await manage('GET', `/agents/${bot.id}/shapes`)).text).items.length,
  count => count === 2,
)

t.test('the page of an agent shows what it does, and proposes a policy to copy', async t => {
  const page = await signedIn(t, author, { route: `/agents/${bot.id}` })
  const shapes = page.getByRole('region', { name: 'What it does' })
  await sees(t, shapes, '/v1/items/{int}')
  await sees(t, shapes, 'by the default')
  await page.getByRole('button', { name: 'Propose a new policy' }).click()
  const proposed = page.getByRole('region', { name: 'Proposed policy' })
  for (const text of [
    'it allows 0 of them and holds 4',
    'seen on one day only',
    '/v1/items/{id:int}',
    'default: Hitl',
  ]) {
    await sees(t, proposed, text)
  }
  await assertAccessible(t, page, 'what an agent does')
  await page.getByRole('button', { name: 'Propose a narrower policy' }).click()
  await sees(t, proposed, 'name: careful')
})

t.test('the page of a policy tells drift when somebody asks', async t => {
  const page = await signedIn(t, author, { route: '/policies/careful' })
  await page.getByRole('button', { name: 'Compare with what its agents do' }).click()
  const drift = page.getByRole('region', { name: 'Drift' })
  for (const text of ['Rules that decided nothing', 'deletes', 'Covered by no rule', '/v1/items/{int}']) {
    await sees(t, drift, text)
  }
  await assertAccessible(t, page, 'drift')
})

t.test('a reviewer sees nothing of it', async t => {
  const page = await signedIn(t, reviewer, { route: `/agents/${bot.id}`, viewport: { width: 360, height: 720 } })
  await sees(t, page, 'Last verdicts')
  t.equal(await page.getByRole('heading', { name: 'What it does' }).count(), 0)
})
