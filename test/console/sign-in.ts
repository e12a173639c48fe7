/** Threats T16 and T44 of SECURITY.md: no cookie, no token where it stays, a link that is worth nothing a moment later. */

import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'

/** Nobody answers there: no request is held until its message matters. */
const Slack = {
  ...{ BotToken: 'xoxb-1', SigningSecret: 'secret', Team: 'T0TEAM', Channels: [{ Id: 'C0REVIEW' }] },
  ApiUrl: 'http://127.0.0.1:1/api',
}
const bench = await startConsole(t, {
  config: { System: { PublicUrl: 'http://127.0.0.1' }, HumanInTheLoop: { Slack } },
})
const { url, reviewer, link, window, signedIn, manage } = bench

t.test('a link signs in once, and its code is nowhere afterwards', async t => {
  const { page } = await window(t)
  const address = await link(reviewer.id)
  await page.goto(address)
  await sees(t, page, 'Nothing waits')
  t.equal(page.url(), `${url}/console/#/`)
  t.notMatch(await page.evaluate('JSON.stringify([history.state, { ...localStorage }])'), /code=|eyJ/)
  t.strictSame(await page.context().cookies(), [])
  const other = await window(t)
  await other.page.goto(address)
  await sees(t, other.page, 'This link was used already')
  await assertAccessible(t, other.page, 'sign-in')
})

t.test('agent id and secret sign in; wrong ones say so', async t => {
  const { page } = await window(t)
  await page.goto(`${url}/console/`)
  await page.getByLabel('Agent id').fill(reviewer.id)
  await page.getByLabel('Secret').fill('wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await sees(t, page, 'Agent id or secret is wrong')
  await page.getByLabel('Secret').fill(reviewer.clientSecret)
  await page.keyboard.press('Enter')
  await sees(t, page, 'Nothing waits')
})

t.test('an agent without a role gets the reason, and is not let in', async t => {
  const { page } = await window(t)
  await page.goto(`${url}/console/`)
  await page.getByLabel('Agent id').fill(bench.bot.id)
  await page.getByLabel('Secret').fill(bench.bot.clientSecret)
  await page.keyboard.press('Enter')
  await sees(t, page, 'none of the roles')
})

for (const [how, click] of Object.entries({
  'Ctrl and a click': { modifiers: ['ControlOrMeta'] },
  'the middle button': { button: 'middle' },
} as const)) {
  t.test(`a link opened in a new tab by ${how} is signed in`, async t => {
    const page = await signedIn(t, reviewer)
    const [tab] = await Promise.all([
      page.waitForEvent('popup'),
      page.getByRole('link', { name: 'History' }).click(click as { modifiers: ['ControlOrMeta'] }),
    ])
    await tab.locator('main[data-ready=active]').waitFor()
    t.match(tab.url(), /#\/history$/)
    t.equal(await tab.evaluate('opener'), null)
    t.match(page.url(), /#\/$/)
  })
}

t.test('a tab that the console did not open is offered in one that is signed in', async t => {
  const page = await signedIn(t, reviewer)
  const tab = await page.context().newPage()
  await tab.goto(`${url}/console/#/history`)
  await sees(t, tab, 'It offers to show this page there')
  await page.getByRole('link', { name: 'Show it here' }).click()
  await page.waitForURL('**/#/history')
  await page.getByRole('link', { name: 'Show it here' }).waitFor({ state: 'detached' })
})

t.test('no session is given to whatever asks in this origin', async t => {
  const page = await signedIn(t, reviewer)
  const { accessToken } = JSON.parse(await page.evaluate(() => sessionStorage.getItem('session') ?? ''))
  const other = await page.context().newPage()
  await other.goto(`${url}/open-api`)
  const heard = await other.evaluate(async () => {
    const channel = new BroadcastChannel('agent-gateway-console')
    const all: unknown[] = []
    channel.addEventListener('message', ({ data }) => all.push(data))
    for (const message of [{ asks: true }, { asksFor: '#/' }, { asksFor: 'javascript:x' }]) channel.postMessage(message)
    // Both requests were answered before: messages come in their order.
    while (all.length < 2) await new Promise(resolve => channel.addEventListener('message', resolve, { once: true }))
    return JSON.stringify({ all, session: sessionStorage.length, shared: { ...localStorage } })
  })
  t.notMatch(heard, accessToken)
  t.match(heard, /^\{"all":\[\{"signedIn":true\},\{"signedIn":true\}\],"session":0,/)
  t.equal(await page.getByRole('link', { name: 'Show it here' }).getAttribute('href'), '#/')
})

t.test('a reload stays signed in; signing out ends all tabs', async t => {
  const page = await signedIn(t, reviewer)
  await page.reload()
  await sees(t, page, 'Nothing waits')
  const [tab] = await Promise.all([
    page.waitForEvent('popup'),
    page.getByRole('link', { name: 'History' }).click({ modifiers: ['ControlOrMeta'] }),
  ])
  await tab.locator('main[data-ready=active]').waitFor()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('Agent id').waitFor()
  await sees(t, tab, 'Signed out in another tab')
  t.equal(await tab.evaluate('sessionStorage.length'), 0)
})

t.test('a point is green only while the page is live', async t => {
  const page = await signedIn(t, reviewer)
  const colors = await page.evaluate(`(() => {
    const mark = document.querySelector('.liveness')
    return ['live', 'connecting', 'off', 'silent'].map(state => {
      mark.dataset.state = state
      return getComputedStyle(mark, '::before').backgroundColor
    })
  })()`)
  t.equal(new Set(colors as string[]).size, 3, 'live and silent have one each, the others have the same')
  t.equal((colors as string[])[1], (colors as string[])[2])
})

t.test('a session that is over keeps what was typed', async t => {
  const ada = await bench.newReviewer()
  const page = await signedIn(t, ada)
  const id = await bench.hold('/pay')
  await page.locator('.row a').click()
  await page.getByRole('button', { name: 'Deny…' }).click()
  await page.getByRole('textbox', { name: /Comment/ }).fill('typed with care')
  await manage('POST', `/agents/${ada.id}/deactivate`)
  await page.getByRole('button', { name: 'Deny', exact: true }).click()
  await sees(t, page, /deactivated/)
  await manage('POST', `/agents/${ada.id}/activate`)
  await page.evaluate('sessionStorage.clear()')
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByRole('button', { name: 'Deny…' }).click()
  t.equal(await page.getByRole('textbox', { name: /Comment/ }).inputValue(), 'typed with care')
  t.equal(JSON.parse((await manage('GET', `/hitl/${id}`)).text).status, 'Pending')
})

t.test('the name at the top opens the account, with a code that binds an account of Slack', async t => {
  const page = await signedIn(t, reviewer)
  await page.getByRole('button', { name: 'tester' }).click()
  await page.getByRole('button', { name: 'Make a code for Slack' }).click()
  const code = page.locator('code[data-code]')
  await code.waitFor()
  t.match(await code.textContent(), /^[2-9A-Z]{5}-[2-9A-Z]{5}$/)
  await assertAccessible(t, page, 'account')
  await page.getByRole('button', { name: 'Close' }).click()
  t.equal(await page.locator('dialog').count(), 0)
})
