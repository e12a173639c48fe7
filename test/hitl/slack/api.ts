/** Answers of Slack's Web API: what was done, what may pass, and what is none. */
import t from 'tap'
import { createSlackCall, parse, textAt } from '../../../src/hitl/slack/api.ts'

function callOf(status: number, body: string, fields: readonly string[] = []) {
  const asked: { readonly url: string; readonly headers: readonly string[]; readonly body: string | Buffer }[] = []
  const ask = async (message: (typeof asked)[number]) => {
    asked.push(message)
    return { status, fields, body: Buffer.from(body) }
  }
  return { asked, call: createSlackCall({ apiUrl: 'https://slack.example/api', token: 'xoxb-1', ask }) }
}

t.test('arguments are a form, and the token stands in a field', async t => {
  const { asked, call } = callOf(200, '{"ok":true,"ts":"1.1"}')
  t.match(await call('chat.postMessage', { channel: 'C1', blocks: [{ type: 'section' }], unfurl_links: false }), {
    refused: undefined,
    body: { ts: '1.1' },
  })
  t.equal(asked[0]?.url, 'https://slack.example/api/chat.postMessage')
  t.equal(asked[0]?.body, 'channel=C1&blocks=%5B%7B%22type%22%3A%22section%22%7D%5D&unfurl_links=false')
  t.match(asked[0]?.headers.join('|'), 'Authorization|Bearer xoxb-1')
})

t.test('a refusal has its code, and says whether it may pass', async t => {
  for (const [status, body, error, isPassing] of [
    [200, '{"ok":false,"error":"channel_not_found"}', 'channel_not_found', false],
    [200, '{"ok":false,"error":"ratelimited"}', 'ratelimited', true],
    [200, `{"ok":false,"error":"${'x'.repeat(100)}"}`, 'x'.repeat(64), false],
    [200, '{"ok":false}', 'no answer that can be read', false],
    [200, 'not JSON', 'no answer that can be read', false],
    [200, '["ok"]', 'no answer that can be read', false],
    [404, '', undefined, false],
    [500, '', undefined, true],
    [429, '', undefined, true],
  ] as const) {
    const { call } = callOf(status, body)
    t.match(await call('m', {}), { error, refused: { isPassing, waitMs: undefined } }, `${status} ${body}`)
  }
  t.match(await callOf(429, '', ['Retry-After', '30']).call('m', {}), { refused: { waitMs: 30_000 } })
  t.match(await callOf(429, '', ['Retry-After', 'soon']).call('m', {}), { refused: { waitMs: undefined } })
})

t.test('texts of JSON are read along a path that is its own', async t => {
  const value = parse('{"a":{"b":"c","n":1}}')
  t.equal(textAt(value, 'a', 'b'), 'c')
  for (const path of [['a'], ['a', 'n'], ['a', 'x', 'y'], ['a', 'constructor', 'name'], []])
    t.equal(textAt(value, ...path), '')
})
