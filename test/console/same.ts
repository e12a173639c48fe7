/** "The same" is said of two requests only when they are: by the digests of what is sent, never by what the page can read. */
import type { Page } from 'playwright-core'
import t from 'tap'
import { sees, startConsole } from '../fixtures/console.ts'

const bench = await startConsole(t)
const { reviewer, signedIn, openRequest, hold, approve, deny } = bench
const headers = { 'Content-Type': 'application/json', 'X-Custom': 'one' }
const page = await signedIn(t, reviewer)

/** What is said when the second request is compared with the first, which was approved. */
async function compared(first: Sent, second: Sent): Promise<string> {
  const bot = await bench.newBot()
  const send = ({ query = '', ...init }: Sent) => hold(`/pay${query}`, { bot, headers, body: '{}', ...init })
  await approve(await send(first))
  const id = await send(second)
  return said(page, id)
}

async function said(page: Page, id: string): Promise<string> {
  await openRequest(page, id, `/requests/${id}`)
  await page.getByText('Compared with').waitFor()
  const text = String(await page.evaluate('document.querySelector("section[aria-labelledby=changes]").innerText'))
  await deny(id)
  return text.slice(text.indexOf('Compared with')).replace(/\s+/g, ' ')
}

interface Sent extends Pick<RequestInit, 'headers' | 'body'> {
  readonly query?: string
}

const same = 'Query, header fields and body are the same.'

t.test('the same request is called the same', async t => {
  const body = '{"a":[1,2],"a":3}'
  t.match(await compared({ query: '?a=b', body }, { query: '?a=b', body }), same)
})

t.test('a parameter that comes before another one of its name is a difference', async t => {
  const text = await compared({ query: '?to=friend' }, { query: '?to=attacker&to=friend' })
  t.match(text, /to friend attacker to \(2\) not there friend/)
  t.match(text, 'The same: header fields, body.')
})

t.test('numbers that differ in the 20th digit differ, and so do a number and its text', async t => {
  const text = await compared({ body: '{"n":12345678901234567891}' }, { body: '{"n":12345678901234567892}' })
  t.match(text, 'n 12345678901234567891 12345678901234567892')
  t.match(await compared({ body: '{"n":5}' }, { body: '{"n":"5"}' }), 'n 5 "5"')
  t.match(await compared({ body: '{"n":1.0}' }, { body: '{"n":1}' }), 'n 1.0 1')
})

t.test('lists that differ behind thousands of values differ', async t => {
  const list = (last: string) => `[${'0,'.repeat(60_000)}${last}]`
  t.match(await compared({ body: list('1') }, { body: list('2') }), '[60000] 1 2')
})

t.test('a value in a long body is compared by its name, and shown in the body without a search', async t => {
  const body = (amount: number) =>
    JSON.stringify([...Array.from({ length: 12_000 }, (_, id) => ({ id, note: 'x'.repeat(40) })), { amount }])
  const bot = await bench.newBot()
  await approve(await hold('/pay', { bot, headers, body: body(1) }))
  const id = await hold('/pay', { bot, headers, body: body(900) })
  await openRequest(page, id, `/requests/${id}`)
  await sees(t, page, '[12000].amount')
  t.equal(await page.locator('.json .changed').textContent(), '900was 1')
  await page.getByRole('button', { name: 'All 12001' }).click()
  await sees(t, page, '11901 more')
  await deny(id)
})

t.test('T08 the first of two equal names is a difference', async t => {
  t.match(await compared({ body: '{"to":1,"to":2}' }, { body: '{"to":3,"to":2}' }), 'to 1 3')
})

t.test('what is spelled in another way is not called the same', async t => {
  const text = await compared({ body: '{"a":1}' }, { body: '{ "a": 1 }' })
  t.match(text, 'They differ in spaces, in escapes or in the order of names only.')
  t.notMatch(text, same)
})

t.test('values that are redacted here are not called the same', async t => {
  const withKey = (key: string) => ({ headers: { ...headers, 'X-Api-Secret': key } })
  const text = await compared(withKey('one'), withKey('two'))
  t.match(text, 'Redacted here, and so not compared: x-api-secret')
  t.match(text, 'The same: query, body.')
  const query = await compared({ query: '?api_key=1' }, { query: '?api_key=2' })
  t.match(query, 'They differ in their order, or in what is redacted here.')
})

t.test('fields that differ with each request are named', async t => {
  const at = (id: string) => ({ headers: { ...headers, 'X-Request-Id': id } })
  t.match(await compared(at('1'), at('2')), 'As with each request, these differ too: x-request-id.')
})

t.test('texts and bytes are compared, too', async t => {
  const text = { 'Content-Type': 'text/plain' }
  const given = (body: string | Buffer) => ({ headers: text, body })
  t.match(await compared(given('send 100 euro'), given('send 900 euro')), 'behind 5 characters 1 9')
  const bytes = (last: number) => Buffer.from([0, 255, 1, last])
  t.match(await compared(given(bytes(128)), given(bytes(129))), 'x{80} x{81}')
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
  t.match(await compared({ headers: form, body: 'a=1&a=2' }, { headers: form, body: 'a=1&a=3' }), 'a (2) 2 3')
})

t.test('what changed is marked in the body, with the value of before', async t => {
  const bot = await bench.agent({ name: 'payer', ownerId: 'team-pay', policyName: 'careful' })
  const send = (body: string) => hold('/marked', { bot, headers, body })
  await approve(await send('{"to":"a\u202eb","list":[1,2],"gone":1,"same":"x","empty":"y"}'), {
    comment: 'known payee',
  })
  const id = await send('{"to":"c","list":[1,3,4],"same":"x","empty":""}')
  await openRequest(page, id, `/requests/${id}`)
  await page.locator('.json .changed').first().waitFor()
  t.strictSame(await page.locator('.json .changed').allTextContents(), [
    'cwas "au{202e}b"',
    '3was 2',
    '4new',
    'was "y"',
  ])
  await sees(t, page.locator('#request-title'), /^payer of team-pay asks for POST \/marked at 127/)
  await sees(t, page, 'Last verdicts on this agent under this rule')
  await sees(t, page.locator('section[aria-labelledby=who]'), 'known payee')
  await page.getByText('1 condition in detail').click()
  await sees(t, page, 'input.method eq "POST"')
  await deny(id)
})

t.test('a body that is gone is not called the same', async t => {
  const bot = await bench.newBot()
  await approve(await hold('/gone', { bot, headers, body: '{}' }))
  const id = await hold('/gone', { bot, headers, body: '{"a":1}' })
  await page.route('**/hitl/*?bodyEncoding=base64', async route => {
    const answer = await route.fetch()
    const read = await answer.json()
    const isOld = read.pending.status === 'Approved'
    const pending = isOld ? { ...read.pending, body: '[SEALED]', bodyEncoding: 'utf8' } : read.pending
    await route.fulfill({ response: answer, json: { ...read, pending } })
  })
  t.match(await said(page, id), 'Body: One of the bodies is not kept.')
  await sees(t, page, 'The same: query, header fields.')
  await page.unrouteAll({ behavior: 'wait' })
})
