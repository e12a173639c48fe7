/** Lists of tools that a server hides from the gateway, in forms that some MCP client reads. T64. */

import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const rules = [{ name: 'no-wipe', effect: 'Deny', conditions: [{ field: 'mcp.tool', operator: 'eq', value: 'wipe' }] }]
const gateway = await startGateway(t, { config: { Policies: [{ name: 'allow-all', default: 'Allow', rules }] } })
const { token } = await gateway.agent()
/** Its policy is decided without a body, so that bodies stream. */
const open = await startGateway(t)
const bot = await open.agent()

const tools = [{ name: 'add' }, { name: 'wipe' }]
const listed = { jsonrpc: '2.0', id: 7, result: { tools } }
const text = JSON.stringify(listed)
const list = { jsonrpc: '2.0', id: 7, method: 'tools/list' }
const call = { jsonrpc: '2.0', id: 8, method: 'tools/call', params: { name: 'add', arguments: {} } }

interface Reply {
  readonly status?: number
  readonly type: string
  readonly body: string | Buffer
  readonly more?: Record<string, string>
}
let reply: Reply = { type: 'application/json', body: text }
const origin = await startOrigin(t, (req, res) => {
  req.resume().on('end', () => {
    res.writeHead(reply.status ?? 200, { 'Content-Type': reply.type, ...reply.more }).end(reply.body)
  })
})

const both = 'application/json, text/event-stream'

interface Asked {
  readonly method?: string
  readonly body?: string
  readonly headers?: Record<string, string>
}

/** What the agent gets, as Latin-1, and whether it came whole. */
async function shown(
  { method = 'POST', body = JSON.stringify(list), headers = {} }: Asked = {},
  [by, bearer]: readonly [typeof gateway, string] = [gateway, token],
): Promise<{ readonly code: string | null; readonly body: string; readonly isWhole: boolean }> {
  const init = { method, headers: { Accept: both, 'Content-Type': 'application/json', ...headers } }
  const answer = await by.proxy(bearer, `${origin.url}/mcp`, method === 'GET' ? init : { ...init, body })
  const code = answer.headers.get('gateway-error')
  let bytes = ''
  try {
    for await (const chunk of answer.body ?? []) bytes += Buffer.from(chunk).toString('latin1')
    return { code, body: bytes, isWhole: true }
  } catch {
    return { code, body: bytes, isWhole: false }
  }
}

const hasWipe = (body: string) => /w\0?i\0?p\0?e/.test(body)

t.test('a stream or document in another character set is refused: clients in Python decode it', async t => {
  const utf16 = Buffer.from(`data: ${text}\n\n`, 'utf16le')
  const utf7 = `data: ${text.replaceAll('"', '+ACI-')}\n\n`
  for (const [charset, body] of [
    ['utf-16le', utf16],
    ['utf-7', utf7],
    ['unicode_escape', 'data: x\n\n'],
    ['"utf-16le"', utf16],
    ['utf-8; charset=utf-7', utf7],
  ] as const) {
    reply = { type: `text/event-stream; charset=${charset}`, body }
    const asks: readonly Asked[] = [
      {},
      { body: JSON.stringify(call) },
      { method: 'GET', headers: { Accept: 'text/event-stream' } },
      { method: 'GET', headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': 's' } },
    ]
    for (const asked of asks) {
      t.match(await shown(asked), { code: 'tool_list_unreadable' }, `${charset} ${JSON.stringify(asked)}`)
    }
  }
  reply = { type: 'application/json; charset=utf-16le', body: Buffer.from(text, 'utf16le') }
  t.match(await shown(), { code: 'tool_list_unreadable' })
  reply = { type: 'application/json', body: Buffer.from(text, 'utf16le') }
  t.match(await shown({ body: JSON.stringify(call) }), { code: 'tool_list_unreadable' }, 'found by its zeros')
  for (const charset of ['utf-8', 'UTF-8', '"utf-8"', 'utf8']) {
    reply = { type: `text/event-stream;charset=${charset}`, body: `data: ${text}\n\n` }
    t.match(await shown(), { code: null, isWhole: true, body: /"add"/ }, charset)
    t.notOk(hasWipe((await shown()).body))
  }
})

t.test('an MCP client gets no hidden list in the answer to any of its requests', async t => {
  const ping = JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'ping' })
  for (const type of ['application/json', 'application/json; charset=utf-8']) {
    reply = { type, body: text }
    for (const body of [JSON.stringify(call), ping]) t.notOk(hasWipe((await shown({ body })).body), `${type} ${body}`)
    t.notOk(hasWipe((await shown({ method: 'GET', headers: { Accept: both } })).body), 'after a redirect')
    t.notOk(hasWipe((await shown({ method: 'DELETE', headers: { 'Mcp-Session-Id': 's' } })).body))
  }
  reply = { type: 'application/json', body: text.replace('"tools"', '"T\\u006fOL\u017f"') }
  t.match(await shown({ body: ping }), { code: 'tool_list_unreadable' }, 'clients in Go ignore letter case')
  reply = { type: 'application/json', body: `\ufeff${text}` }
  t.match(await shown({ body: ping }), { code: 'tool_list_unreadable' }, 'fetch drops the mark')
  reply = { type: 'application/json', body: text, more: { 'Content-Encoding': 'x-own' } }
  t.match(await shown({ body: ping }), { code: 'tool_list_unreadable' })
  reply = { type: 'application/json; x=text/event-stream', body: text }
  t.match(await shown({ body: ping }), { code: 'tool_list_unreadable' }, 'the type has two readings')
})

t.test('what is no list passes as it is, to MCP clients too', async t => {
  const result = { jsonrpc: '2.0', id: 8, result: { content: [{ type: 'text', text: '"tools": é' }] } }
  const body = ` ${JSON.stringify(result)}\n`
  reply = { type: 'application/json', body, more: { ETag: '"1"' } }
  const headers = { Accept: both, 'Content-Type': 'application/json' }
  const init = { method: 'POST', body: JSON.stringify(call), headers }
  const answer = await gateway.proxy(token, `${origin.url}/mcp`, init)
  t.match([answer.status, answer.headers.get('etag'), await answer.text()], [200, '"1"', body])
  const structured = JSON.stringify({ ...result, result: { structuredContent: { tools: [1] } } })
  reply = { type: 'application/json', body: structured }
  t.equal((await shown({ body: JSON.stringify(call) })).body, structured)
})

t.test('a list behind a mebibyte of another answer is not delivered whole', async t => {
  const pad = 'x'.repeat(1_100_000)
  const long = text.replace('{', `{"pad":"${pad}",`)
  for (const [type, body] of [
    ['application/json', long],
    ['text/event-stream', `data: ${long}\n\n`],
    ['text/event-stream', `: ${pad}\ndata: ${text}\n\n`],
  ] as const) {
    reply = { type, body }
    const { body: got, isWhole } = await shown({ body: JSON.stringify(call) })
    t.notOk(isWhole && hasWipe(got), `${type}, ${body.slice(0, 10)}`)
  }
  reply = { type: 'application/json', body: JSON.stringify({ jsonrpc: '2.0', id: 8, result: { pad } }) }
  t.match(await shown({ body: JSON.stringify(call) }), { isWhole: true, body: /x{1000}"\}\}$/ })
})

t.test('the stream of the older transport is read once it names its endpoint', async t => {
  const headers = { Accept: 'text/event-stream' }
  const endpoint = 'event: endpoint\ndata: /messages?s=1\n\n'
  for (const begin of [endpoint, `: ${'x'.repeat(1_100_000)}\n${endpoint}`, endpoint.replaceAll('\n', '\r\n')]) {
    reply = { type: 'text/event-stream', body: `${begin}event: message\ndata: ${text}\n\n` }
    const { body } = await shown({ method: 'GET', headers })
    t.match(body, /event: endpoint/)
    t.match(body, /"add"/)
    t.notOk(hasWipe(body), begin.slice(0, 20))
  }
  const other = `data: the "tools" in C:\\users\n\ndata: ${text}\n\n`
  reply = { type: 'text/event-stream', body: other }
  t.equal((await shown({ method: 'GET', headers })).body, other, 'a stream of another API passes')
})

t.test('events that readers divide in different ways hide nothing', async t => {
  const json = text.slice(1)
  const hidden = {
    'a mark before the event': `\ufeffdata: 1\ndata: ${text}\n\n`,
    'a mark before a later event': `: a\n\n\ufeffdata: 1\ndata: ${text}\n\n`,
    'U+2028 ends a line in Python': `event: a\u2028data: ${text}\n\n`,
    'a return ends none in Go': `data:\r${text}\n\n`,
    'an event that goes on in Go': `data: {\r\r${json}\n\n`,
    'in short parts': `data: {"result":\r\r{"tools":[\r\r{"name":"wipe"}]}}\n\n`,
    'without an end': `data: ${text}\u2028data: ${text}`,
  }
  for (const [name, body] of Object.entries(hidden)) {
    reply = { type: 'text/event-stream', body }
    for (const asked of [{}, { body: JSON.stringify(call) }, { method: 'GET', headers: { 'Mcp-Session-Id': 's' } }]) {
      t.notOk(hasWipe((await shown(asked)).body), `${name}, ${JSON.stringify(asked)}`)
    }
  }
  for (const body of [`\ufeffdata: ${text}\n\n`, `id: 1\rdata: ${text}\r\r`, `data: ${text}`]) {
    reply = { type: 'text/event-stream', body }
    t.match(await shown(), { body: /"add"/, isWhole: true })
    t.notOk(hasWipe((await shown()).body))
  }
})

t.test('a list is read with any status: clients in Go take it for the answer', async t => {
  for (const status of [202, 400, 404, 500]) {
    for (const type of ['application/json', 'text/plain', 'text/html; charset=iso-8859-1']) {
      reply = { status, type, body: text }
      t.notOk(hasWipe((await shown()).body), `${status} ${type}`)
    }
    reply = { status, type: 'text/plain', body: 'Accepted \xe9' }
    t.match(await shown(), { code: null, body: /^Accepted/ }, `${status}`)
  }
})

t.test('the tools are digested whatever the client accepts, and however long its request is', async t => {
  const changes = async () => JSON.parse((await open.manage('GET', '/audit?action=mcp.toolChanged')).text).items.length
  const see = (description: string, asked: Asked) => {
    reply = {
      type: 'application/json',
      body: JSON.stringify({ ...listed, result: { tools: [{ name: 'add', description }] } }),
    }
    return shown(asked, [open, bot.token])
  }
  const long = JSON.stringify({ ...list, params: { _meta: { pad: 'x'.repeat(10_000) } } })
  const pad = `{"params":{"pad":"${'x'.repeat(200_000)}"},"method":"tools\\/list","id":1,"jsonrpc":"2.0"}`
  let seen = 0
  await see('0', {})
  for (const body of [JSON.stringify(list), JSON.stringify({ ...list, Method: 'ping' }), long, pad]) {
    for (const headers of [{}, { Accept: '*/*' }, { Accept: '*/*', 'Content-Type': 'text/plain' }]) {
      seen++
      t.match(await see(String(seen), { body, headers }), { code: null, isWhole: true })
      t.equal(await changes(), seen, `${body.slice(0, 40)} ${JSON.stringify(headers)}`)
    }
  }
  await see('\u200b', { headers: { Accept: '*/*' } })
  t.equal(origin.seen.at(-1)?.headers['accept-encoding'], 'identity', 'a short request is read before it is sent')
  t.equal(await changes(), seen + 1)
  reply = {
    type: 'text/event-stream',
    body: `data: ${JSON.stringify({ ...listed, result: { tools: [{ name: 'add', description: '\ufeff' }] } })}\n\n`,
  }
  await shown({}, [open, bot.token])
  t.equal(await changes(), seen + 2, 'a mark in the text counts')
})
