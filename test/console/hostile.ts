/** Threat T16 of SECURITY.md: what agents write is text, wherever the console shows it. */

import t from 'tap'
import { startConsole } from '../fixtures/console.ts'

const script = `"><img src=x onerror="alert(1)"><script>alert(2)</script><svg onload=alert(3)>{{7*7}}\${7*7}javascript:alert(4)`
const bidi = 'invoice\u202egnp.exe\u2066\u200b\u00ad'

const bench = await startConsole(t)
const { reviewer, hold, signedIn, openRequest, deny } = bench
const json = { 'Content-Type': 'application/json' }
const agentIn = (name: string) => bench.agent({ name, ownerId: `team ${script}`, policyName: 'careful' })

t.test('script in every place that an agent writes to is shown, and does nothing', async t => {
  const bot = await agentIn(`bot ${script}`)
  const path = `/p/${encodeURIComponent(script)}?q=${encodeURIComponent(script)}&${encodeURIComponent(script)}=1`
  const body = JSON.stringify({ [script]: script, deep: [script] })
  const ids = [
    await hold(path, { bot, headers: { ...json, 'X-Note': script }, body }),
    await hold(path, { bot, headers: { 'Content-Type': 'text/html' }, body: script }),
    await hold(path, { bot, headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: `a=${script}` }),
    await hold(path, {
      bot,
      headers: json,
      body: JSON.stringify({ model: script, messages: [{ role: script, content: script }] }),
    }),
    await hold(path, {
      bot,
      headers: json,
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: script, arguments: { script } },
      }),
    }),
  ]
  const page = await signedIn(t, reviewer)
  page.on('dialog', dialog => {
    t.fail(`a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  for (const id of ids) {
    await openRequest(page, id)
    await page.locator('.fields summary').click()
    t.equal(await page.locator('img, script:not([src]), svg, iframe, object, embed').count(), 0)
    t.ok((await page.locator('.request').getByText('onerror').count()) > 0, 'it is shown')
    await page.getByRole('button', { name: 'Deny…' }).click()
    await page.getByRole('textbox', { name: /Comment/ }).fill(script)
    await page.getByRole('button', { name: 'Deny', exact: true }).click()
    await page.locator('.toast', { hasText: 'Denied.' }).waitFor()
    await page.getByRole('button', { name: 'Dismiss' }).click()
  }
  await page.goto(`${bench.url}/console/#/requests/${ids[0]}`)
  // The comment of this verdict, and those of the last ones under its rule.
  await page
    .locator('.said', { hasText: 'onerror' })
    .nth(ids.length - 1)
    .waitFor()
  t.equal(await page.locator('img, script:not([src]), svg').count(), 0)
})

t.test('characters that deceive the eye are visible', async t => {
  const bot = await agentIn('bot')
  const id = await hold('/x', { bot, headers: json, body: JSON.stringify({ [bidi]: bidi }) })
  const page = await signedIn(t, reviewer, { route: `/?id=${id}` })
  await page.locator('.request .digest').waitFor()
  const text = (await page.locator('main').textContent()) ?? ''
  t.notMatch(text, /[\u202e\u2066\u200b\u00ad]/)
  for (const code of ['u{202e}', 'u{2066}', 'u{200b}', 'u{ad}']) {
    t.ok((await page.locator('mark.escape').getByText(code).count()) >= 2, code)
  }
  await deny(id)
})

t.test('a pile of combining marks does not cover what is around it', async t => {
  const bot = await agentIn('bot')
  const id = await hold('/pile', {
    bot,
    headers: json,
    body: JSON.stringify({ note: `a${'\u0301'.repeat(40)}`, amount: 5 }),
  })
  const page = await signedIn(t, reviewer, { route: `/?id=${id}` })
  await page.locator('.request .digest').waitFor()
  t.equal(await page.locator('.json mark.escape').textContent(), Array.from({ length: 36 }, () => 'u{301}').join(' '))
  await deny(id)
})

t.test('bodies of a megabyte on one line, and of 64 levels, are shown without a stop', async t => {
  const long = await hold('/long', { headers: { 'Content-Type': 'text/plain' }, body: 'x'.repeat(1_000_000) })
  const deep = await hold('/deep', { headers: json, body: `${'{"a":['.repeat(32)}1${']}'.repeat(32)}` })
  const wide = await hold('/wide', { headers: json, body: JSON.stringify(Array.from({ length: 20_000 }, (_, n) => n)) })
  const page = await signedIn(t, reviewer)
  for (const [id, text] of [
    [long, '934,464 more characters'],
    [deep, '{1}'],
    [wide, '[20000]'],
  ] as const) {
    await page.goto(`${bench.url}/console/#/?id=${id}`)
    await page.getByText(text).first().waitFor()
    const width = Number(
      await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
    )
    t.equal(width, 0, 'the page is not wider than the window')
  }
  await page.goto(`${bench.url}/console/#/?id=${deep}`)
  await page.getByText('{1}').first().waitFor()
  for (let level = 0; level < 70; level++) {
    const closed = page.locator('.json-toggle[aria-expanded=false]').first()
    if ((await closed.count()) === 0) break
    await closed.click()
  }
  t.equal(await page.locator('.json-toggle').count(), 64)
  for (const id of [long, deep, wide]) await deny(id)
})
