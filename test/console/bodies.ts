/** A reviewer sees what will be sent: a view that leaves anything out says how much, and can show it. */
import { buffer } from 'node:stream/consumers'
import type { Page } from 'playwright-core'
import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'
import { announced, bytesOf, bytesOfHex, showAll, shownText, shownValues, valuesOf } from '../fixtures/shown.ts'

const bench = await startConsole(t)
const { reviewer, signedIn, openRequest, deny } = bench
const json = { 'Content-Type': 'application/json' }

const view = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()

async function shows(page: Page, body: string | Buffer, type: string): Promise<string> {
  // Denials cost an agent its trust.
  const bot = await bench.newBot()
  const id = await bench.hold('/body', { bot, headers: { 'Content-Type': type }, body })
  await openRequest(page, id)
  return id
}

t.test('T08 both of two equal names are shown, and numbers as they are written', async t => {
  const page = await signedIn(t, reviewer)
  const body = '{"to":"friend","amount":12345678901234567891,"to":"attacker","x":1e400,"y":-0.10,"":{"":[]}}'
  const id = await shows(page, body, 'application/json')
  t.strictSame(await shownValues(page), valuesOf(body))
  await sees(t, page, 'The name "to" stands more than once in one object')
  t.equal(await page.getByText('more than once', { exact: true }).count(), 2)
  await assertAccessible(t, page, 'doubled names')
  await deny(id)
})

t.test('line ends in a string do not look like members of their own', async t => {
  const page = await signedIn(t, reviewer)
  const id = await shows(page, JSON.stringify({ note: 'ok"\namount: 5' }), 'application/json')
  t.equal(await page.locator('.json-string mark.escape').textContent(), 'u{a}\n')
  await deny(id)
})

t.test('all members of a call of a tool are shown, and of a call with doubled names no tool is named', async t => {
  const page = await signedIn(t, reviewer)
  const call = (params: string) =>
    `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${params},"Params":{"name":"x"}}`
  const id = await shows(page, call('{"name":"close","arguments":{"a":1},"_meta":{"token":5}}'), 'application/json')
  await sees(t, page, 'MCP tool close')
  t.strictSame(await shownValues(page, 0), ['a', '1'])
  t.strictSame(await shownValues(page, 1), valuesOf(call('{"_meta":{"token":5}}')))
  const doubled = call('{"name":"close","name":"open","arguments":{}}')
  const second = await shows(page, doubled, 'application/json')
  t.equal(await page.getByText('MCP tool').count(), 0)
  t.strictSame(await shownValues(page), valuesOf(doubled))
  for (const one of [id, second]) await deny(one)
})

t.test('all of a call of a model is shown: what is beside the texts, too', async t => {
  const page = await signedIn(t, reviewer)
  const body = {
    model: 'm',
    tools: [{ name: 'pay' }],
    messages: [
      { role: 'user', name: 'eve', content: 'one\ntwo' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'three' },
          { type: 'text', text: 'four', hidden: 5 },
        ],
      },
      { content: null, tool_calls: [{ id: 6 }] },
    ],
  }
  const id = await shows(page, JSON.stringify(body), 'application/json')
  await showAll(page)
  const shown = (await page.locator('.body').textContent()) ?? ''
  for (const text of ['m', 'pay', 'user', 'eve', 'one\ntwo', 'three', 'four', 'hidden: 5', 'null', 'id: 6']) {
    t.ok(shown.includes(text), text)
  }
  await deny(id)
})

t.test('of a body that is no text every byte can be shown, and until then it is said how many are not', async t => {
  const page = await signedIn(t, reviewer)
  const body = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7919) % 256))
  const id = await shows(page, body, 'application/octet-stream')
  t.equal(await announced(page), 300_000 - 16_384)
  t.strictSame(bytesOfHex(await shownText(page, '.hex')), body.subarray(0, 16_384))
  await showAll(page)
  t.ok(bytesOfHex(await shownText(page, '.hex')).equals(body), 'all bytes')
  await sees(t, page, /of 300000 bytes are not UTF-8/)
  await view(page, 'Text')
  await showAll(page)
  t.ok(bytesOf(await shownText(page, '.raw')).equals(body), 'all bytes as text')
  await deny(id)
})

t.test('a text with one byte that is not UTF-8 is shown as text, with that byte', async t => {
  const page = await signedIn(t, reviewer)
  const body = Buffer.from('a na\xefve text', 'latin1')
  const id = await shows(page, body, 'text/plain; charset=iso-8859-1')
  t.equal(await page.locator('mark.escape').textContent(), 'x{ef}')
  await sees(t, page, '1 of 12 bytes are not UTF-8')
  await sees(t, page, 'Content-Type says that the text is iso-8859-1. It is shown as UTF-8.')
  t.strictSame(bytesOf(await shownText(page, '.raw')), body)
  await assertAccessible(t, page, 'bytes in a text')
  await deny(id)
})

t.test('JSON that is no tree is shown as text, which says so', async t => {
  const page = await signedIn(t, reviewer)
  const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
  for (const [body, note] of [
    [deep(101), 'JSON of more than 100 levels is shown as text'],
    [deep(50_000), 'JSON of more than 100 levels is shown as text'],
    ['{"a":1,}', 'This is not valid JSON'],
    [`[${'1,'.repeat(1_000_000)}1]`, 'JSON of more than 1,000,000 values is shown as text'],
  ] as const) {
    const id = await shows(page, body, 'application/json')
    await sees(t, page, note)
    t.equal((await shownText(page, '.raw')).length + (await announced(page)), body.length)
    await deny(id)
  }
  const id = await shows(page, deep(100), 'application/json')
  await showAll(page)
  t.equal(await page.locator('.json-toggle').count(), 99)
  await deny(id)
})

t.test('a form of a hundred thousand empty pairs is shown, the first of them at once', async t => {
  const page = await signedIn(t, reviewer)
  const id = await shows(page, `a=%FF%41+b&=z${'&'.repeat(100_000)}`, 'application/x-www-form-urlencoded')
  await sees(t, page, '99,902 more')
  t.equal(await shownText(page, '.body td'), '\udcffA b')
  await assertAccessible(t, page, 'form')
  await deny(id)
})

t.test('a query and a long header field are shown whole', async t => {
  const page = await signedIn(t, reviewer)
  const id = await bench.hold('/x?to=attacker&&flag&to=friend&q=', {
    headers: { ...json, 'X-Long': 'y'.repeat(9_000) },
  })
  await openRequest(page, id)
  const rows = (await page.locator('.grid').first().locator('tbody tr').allTextContents()).map(text => text.trim())
  t.strictSame(rows, ['toattacker', 'no nameno value', 'flagno value', 'tofriend', 'q'])
  await page.locator('.fields summary').click()
  await sees(t, page, '808 more characters')
  await page.getByRole('button', { name: 'Show more' }).click()
  t.ok((await page.locator('.fields').textContent())?.includes('y'.repeat(9_000)))
  await deny(id)
})

t.test(
  'parts of a multipart body are shown as what they are, a picture as its pixels, and saved byte by byte',
  async t => {
    const page = await signedIn(t, reviewer)
    const picture = Buffer.from('R0lGODlhAQABAIAAAP8AAP///ywAAAAAAQABAAACAkQBADs=', 'base64')
    const text = (...lines: readonly string[]) => Buffer.from(lines.join('\r\n'))
    const disposition = 'Content-Disposition: form-data; name='
    const body = Buffer.concat([
      text(
        '--b',
        `${disposition}"note"`,
        '',
        '<img src=x onerror=alert(1)>',
        `--b`,
        `${disposition}"file"; filename="a.gif"`,
        '',
      ),
      text('Content-Type: image/gif', '', ''),
      picture,
      text('', '--b', `${disposition}"meta"`, 'Content-Type: application/json', '', '{"to":"payee"}', '--b--', ''),
    ])
    const id = await shows(page, body, 'multipart/form-data; boundary=b')
    const parts = page.locator('.body-parts > li')
    t.equal(await parts.count(), 3)
    await sees(t, parts.nth(0), '<img src=x onerror=alert(1)>')
    await sees(t, parts.nth(1), 'GIF, 1 × 1 pixels')
    await sees(t, parts.nth(1), 'a.gif')
    await page.locator('.picture canvas[width="1"]').waitFor()
    t.strictSame(await shownValues(page), ['to', '"payee"'])
    await assertAccessible(t, page, 'parts')
    for (const [button, bytes] of [
      [page.locator('.body-tools').first().getByRole('button', { name: 'Download' }), body],
      [parts.nth(1).getByRole('button', { name: 'Download' }), picture],
    ] as const) {
      const [saved] = await Promise.all([page.waitForEvent('download'), button.click()])
      t.match(saved.suggestedFilename(), /^(body|part)-.*\.bin$/)
      t.strictSame(await buffer(await saved.createReadStream()), bytes)
    }
    await deny(id)
  },
)

t.test('GraphQL is an operation with variables, and a text is found in it', async t => {
  const page = await signedIn(t, reviewer)
  const query = 'mutation Close($id: ID!) {\n  close(id: $id) { id }\n}'
  const body = JSON.stringify({ query, operationName: 'Close', variables: { id: 'c-17' }, extensions: { a: 1 } })
  const id = await shows(page, body, 'application/json')
  t.equal(await page.locator('.body .raw').textContent(), query)
  t.strictSame(await shownValues(page, 0), ['id', '"c-17"'])
  t.strictSame(await shownValues(page, 1), ['extensions', 'a', '1'])
  await page.getByLabel('Find in the body').fill('CLOSE')
  await page.locator('.match').nth(2).waitFor()
  await page.getByLabel('Find in the body').press('Enter')
  t.equal(await page.locator('.match.current').textContent(), 'Close')
  await assertAccessible(t, page, 'a search in the body')
  await deny(id)
})
