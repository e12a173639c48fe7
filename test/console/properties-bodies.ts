/**
 * Shown is sent, for random requests: each byte of the body is in each view, or announced as not shown; the bytes that the page
 * shows are those that the upstream gets; two requests are called the same only when they are; the row, the page and the dialog
 * for several name the same thing.
 */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { startConsole } from '../fixtures/console.ts'
import { eventually } from '../fixtures/gateway.ts'
import { type RandomBody, randomBody, randomQuery, variantOf } from '../fixtures/random-body.ts'
import { runs } from '../fixtures/runs.ts'
import { announced, bytesOf, bytesOfHex, showAll, shownText, shownValues, valuesOf } from '../fixtures/shown.ts'

const bench = await startConsole(t, {
  config: { System: { RateLimit: { RequestsPerMinute: 1_000_000, Burst: 100_000 } } },
})
const { reviewer, signedIn, openRequest, origin, approve } = bench
const page = await signedIn(t, reviewer)

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
/** Of the whole body: parts of one have views of their own. */
const press = (name: string) => page.locator('.views').first().getByRole('button', { name, exact: true }).click()

interface Sent {
  readonly query: string
  readonly body: RandomBody
}

/** Each view says what it leaves out, and shows it when asked. */
async function checkViews(t: Test, { body }: Sent): Promise<void> {
  const bytes = Buffer.from(body.bytes)
  await press('Text')
  const text = await shownText(page, '.body .raw')
  const hidden = await announced(page)
  await showAll(page)
  const whole = await shownText(page, '.body .raw')
  t.ok(bytesOf(whole).equals(bytes), `${body.kind}: all as text`)
  t.equal(text.length + hidden, whole.length, `${body.kind}: what is not shown at first is counted`)
  await press('Bytes')
  const first = bytesOfHex(await shownText(page, '.hex')).length
  t.equal(first + (await announced(page)), bytes.length, `${body.kind}: bytes that are not shown at first are counted`)
  await showAll(page)
  t.ok(bytesOfHex(await shownText(page, '.hex')).equals(bytes), `${body.kind}: all bytes`)
}

/** Names that a view stands for. */
const implied = new Set(['params', 'name', 'arguments', 'messages', 'role', 'content', 'type', 'text', '"text"'])

/** The view that the console chooses has every name and value. */
async function checkShape(t: Test, { body }: Sent): Promise<void> {
  const [chosen = ''] = await page.locator('.views [aria-pressed=true]').allTextContents()
  await showAll(page)
  if (chosen === 'JSON')
    t.strictSame(await shownValues(page), valuesOf(body.text), 'all names and values, in their order')
  if (chosen === 'Tool' || chosen === 'Messages') {
    const shown = await shownText(page, '.body')
    for (const value of valuesOf(body.text)) {
      const isShown = implied.has(value) || /^\d+$/.test(value) || shown.includes(value.replace(/^"(.*)"$/s, '$1'))
      t.ok(isShown, `${chosen}: ${value}`)
    }
  }
  if (chosen === 'Parts') await checkParts(t, Buffer.from(body.bytes))
  if (chosen === 'Form') {
    const cells = await page.locator('.body tbody tr').allTextContents()
    t.equal(cells.length, body.text.split('&').length, 'a line for each pair')
    const [first] = [...new URLSearchParams(body.text)]
    if (first !== undefined && /^[\w ]*$/.test(first.join(''))) {
      const [name, value] = first
      t.ok(cells.includes(`${name || 'no name'}${value || 'no value'}`), 'decoded')
    }
  }
}

/** Each part has its own bytes, by a reader that knows the one form that the bodies are drawn in. */
async function checkParts(t: Test, bytes: Buffer): Promise<void> {
  const wanted = `\r\n${bytes.toString('latin1')}`.split('\r\n--b').slice(1, -1)
  const parts = page.locator('.body-parts > li')
  t.equal(await parts.count(), wanted.length, 'a place for each part')
  for (const [index, part] of wanted.entries()) {
    const content = Buffer.from(part.slice(part.indexOf('\r\n\r\n') + 4), 'latin1')
    if (content.length === 0) continue
    await parts.nth(index).getByRole('button', { name: 'Bytes', exact: true }).click()
    const shown = bytesOfHex(await shownText(page, `.body-parts > li:nth-child(${index + 1}) .hex`))
    t.ok(shown.equals(content), `all bytes of part ${index + 1}`)
  }
}

/** What was asked for, as the page says. */
async function checkTarget(t: Test, id: string, { query }: Sent): Promise<void> {
  const target = await shownText(page, '.target')
  t.equal(target, `What will be sent:POST ${origin.url}/sent`)
  const pairs = await page.evaluate(
    `[...document.querySelectorAll('section[aria-labelledby=sent] .grid')].find(one => one.caption?.textContent === 'Query')?.tBodies[0].innerText`,
  )
  const wanted = query === '' ? undefined : query.slice(1).split('&').map(pairText).join('\n')
  t.equal(pairs, wanted, 'the query as it is sent')
  t.match(
    await page.locator('.digest code').textContent(),
    JSON.parse((await bench.manage('GET', `/hitl/${id}`)).text).pending.digest,
  )
}

const pairText = (pair: string) => {
  const [name = '', ...value] = pair.split('=')
  return `${name || 'no name'}\t${pair.includes('=') ? value.join('=') : 'no value'}`
}

async function claim(selector: string): Promise<string> {
  return String(await page.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ''`))
}

t.test('T08 random requests', { timeout: 1_200_000 }, async t => {
  const sent = fc.record({ query: randomQuery, body: randomBody })
  const pair = sent.chain(first => fc.tuple(fc.constant(first), variantOf(first), variantOf(first)))
  const property = fc.asyncProperty(pair, async ([first, second, third]) => {
    const bot = await bench.newBot()
    const hold = ({ query, body }: Sent) =>
      bench.hold(`/sent${query}`, { bot, headers: { 'Content-Type': body.type }, body: body.bytes })
    const isSame = (left: Sent, right: Sent) =>
      left.query === right.query && sha256(left.body.bytes) === sha256(right.body.bytes)

    const id = await hold(first)
    await openRequest(page, id)
    await checkTarget(t, id, first)
    await checkShape(t, first)
    await checkViews(t, first)
    origin.seen.length = 0
    await (await approve(id)).body?.cancel()
    await eventually(() => origin.seen[0]?.done === true, Boolean)
    t.equal(origin.seen[0]?.sha256, sha256(first.body.bytes), 'the upstream gets what was shown')

    const later = [await hold(second), await hold(third)]
    await openRequest(page, later[0]!)
    await page.getByText('Compared with').waitFor()
    const compared = await claim('section[aria-labelledby=changes]')
    t.equal(compared.includes('Query, header fields and body are the same.'), isSame(first, second), 'called the same')

    const [name, other] = await page.locator('.row', { hasText: '/sent' }).locator('.row-what').allTextContents()
    await page.getByRole('button', { name: 'Select all 2' }).click()
    await page.locator('.several').getByRole('button', { name: 'Approve…' }).click()
    await page.locator('dialog').getByText('Reading what differs').waitFor({ state: 'detached' })
    const together = await claim('dialog')
    t.equal(
      together.includes('Query, header fields and body are the same.'),
      isSame(second, third),
      'called the same, of several',
    )
    t.strictSame(await page.locator('dialog .row-what').allTextContents(), [name, other], 'named as in the list')
    await page.keyboard.press('Escape')
    for (const one of later) await (await approve(one)).body?.cancel()
    await page
      .locator('.row')
      .waitFor({ state: 'detached' })
      .catch(() => {})
    return t.passing()
  })
  await fc.assert(property, { numRuns: runs(40, 8), endOnFailure: true })
})
