/** What detectors find in a held body is counted at the top of the request, and marked where it stands in every view. */
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { assertAccessible } from '../fixtures/axe.ts'
import { sees, startConsole } from '../fixtures/console.ts'

const bench = await startConsole(t)
const { reviewer, signedIn, openRequest, url } = bench
const page = await signedIn(t, reviewer)
const key = 'AKIAIOSFODNN7EXAMPLE'

async function shows(type: string, body: string | Buffer, more: Readonly<Record<string, string>> = {}): Promise<void> {
  const id = await bench.hold('/body', { headers: { 'Content-Type': type, ...more }, body })
  await openRequest(page, id)
}

/** Marked texts, without the names that the console adds. */
async function marked(): Promise<readonly string[]> {
  const texts = await page.evaluate(`[...document.querySelectorAll('.body .finding')].map(one => {
    const copy = one.cloneNode(true)
    copy.querySelector('.finding-name').remove()
    return copy.textContent
  })`)
  return texts as string[]
}

const view = (name: string) => page.getByRole('button', { name, exact: true }).click()

t.test('in JSON, also deep in it, behind other characters, and within an escape', async t => {
  const body = `{"\u00fc\u{1f600}":"${key}","a":{"b":{"c":{"d":["pass\\u0061 ${key}"]}}},"password":"p\\"w\\u00fcrd","card":4111111111111111}`
  await shows('application/json', body)
  t.strictSame(await marked(), [key, key, 'p"w\u00fcrd', '4111111111111111'])
  const top = page.locator('.found')
  for (const text of ['4 findings in the body', 'aws-access-key 2', 'secret-name 1', 'card-number 1']) {
    await sees(t, top, text)
  }
  await assertAccessible(t, page, 'findings')
  await view('Text')
  t.strictSame(await marked(), [key, key, 'p\\"w\\u00fcrd', '4111111111111111'])
  await view('Bytes')
  t.match((await marked()).join(' '), /^41 4b 49 41 49 4f 53 .* 34 31 31 31 31/)
})

t.test('a list that is closed says how many are in it', async t => {
  await shows('application/json', JSON.stringify([...Array.from({ length: 150 }, (_, index) => index), key]))
  await sees(t, page.locator('.json'), '1 finding')
  await page.locator('.json-toggle').click()
  await sees(t, page.locator('.json'), '51 more')
  await sees(t, page.locator('.json'), '1 finding')
  await page.getByRole('button', { name: '51 more' }).click()
  t.strictSame(await marked(), [key])
})

t.test('in a form, in messages and in bytes that are no text', async t => {
  await shows('application/x-www-form-urlencoded', `a=1&password=p%20w+x&key=${key}`)
  t.strictSame(await marked(), ['p w x', key])
  await shows('application/json', JSON.stringify({ messages: [{ role: 'user', content: `use ${key} now` }] }))
  t.strictSame(await marked(), [key])
  await shows(
    'application/octet-stream',
    Buffer.concat([Buffer.from([255, 254, 0, 0, 1, 255]), Buffer.from(` ${key} `)]),
  )
  t.equal((await marked()).length, 2, 'on two lines')
  await view('Text')
  t.strictSame(await marked(), [key])
})

t.test('behind what is shown at first they are counted, and of many the first are marked', async t => {
  await shows('text/plain', `${'x '.repeat(40_000)}${key}`)
  await sees(t, page.locator('.cut'), 'with 1 finding')
  await shows('text/plain', `${key} `.repeat(600))
  await sees(t, page.locator('.found'), 'The first 500 are marked.')
  t.equal((await marked()).length, 500)
})

t.test('a body that was not searched says so', async t => {
  await shows('application/json', gzipSync('{}'), { 'Content-Encoding': 'gzip' })
  await sees(t, page.locator('.request'), 'Detectors did not search the body.')
  await sees(t, page.locator('.body'), 'Content-Encoding is gzip')
})

t.test('what the gateway keeps from reviewers is marked in header fields and in the query', async t => {
  await bench.hold('/q?token=abc&x=1', { headers: { Cookie: 'sid=secret', 'X-Note': 'see agw_0123456789abcdef here' } })
  await page.goto(`${url}/console/#/`)
  await page.locator('.row', { hasText: '/q' }).locator('a').click()
  await page.locator('.fields summary').click()
  t.ok((await page.locator('.redacted', { hasText: 'redacted here, sent as it came' }).count()) >= 2)
  await sees(t, page.locator('.fields .finding-name'), 'redacted here')
})
