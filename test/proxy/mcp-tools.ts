/** Lists of tools on their way from an MCP server to an agent: what its policy denies is not in them. T64. */
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const rules = [
  {
    name: 'no-drop',
    priority: 9,
    effect: 'Deny',
    conditions: [{ field: 'mcp.tool', operator: 'in', value: ['drop', 'wipe'] }],
  },
  {
    name: 'small-sums',
    priority: 8,
    effect: 'Deny',
    conditions: [
      { field: 'mcp.tool', operator: 'eq', value: 'add' },
      { field: 'mcp.arguments.a', operator: 'gt', value: 100 },
    ],
  },
  { name: 'ask', priority: 7, effect: 'Hitl', conditions: [{ field: 'mcp.tool', operator: 'eq', value: 'pay' }] },
]
const policies = [{ name: 'allow-all', default: 'Allow', rules }]
const gateway = await startGateway(t, { config: { Policies: policies } })
const { token } = await gateway.agent()

const tool = (name: string, more: object = {}) => ({
  name,
  description: `${name}s`,
  inputSchema: { type: 'object' },
  ...more,
})
const tools = ['add', 'drop', 'pay', 'wipe'].map(name => tool(name))
const listed = { jsonrpc: '2.0', id: 7, result: { tools, nextCursor: 'n', ttlMs: 1000, cacheScope: 'public' } }
const json = (value: unknown) => JSON.stringify(value)
const event = (value: unknown, more = '') => `${more}data: ${json(value)}\n\n`
const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } }

type Write = (text: string | Buffer) => void
let reply: { type: string; status?: number; headers?: Record<string, string>; body: (write: Write) => unknown } = {
  type: 'application/json',
  body: write => write(json(listed)),
}
const origin = await startOrigin(t, (req, res) => {
  req.resume().on('end', async () => {
    res.writeHead(reply.status ?? 200, { 'Content-Type': reply.type, ETag: '"1"', ...reply.headers })
    await reply.body(text => res.write(text))
    res.end()
  })
})

const mcpHeaders = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' }
const list = { jsonrpc: '2.0', id: 7, method: 'tools/list' }

function ask(message: unknown = list, init: RequestInit = {}, bearer = token): Promise<Response> {
  const headers = { ...mcpHeaders, ...init.headers }
  return gateway.proxy(bearer, `${origin.url}/mcp`, { method: 'POST', body: json(message), ...init, headers })
}

const namesIn = (message: unknown) => (message as typeof listed).result.tools.map(({ name }) => name)
const messagesIn = (text: string) => [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => JSON.parse(data))

t.test('tools that are denied whatever their arguments are not listed; those that are held or depend are', async t => {
  for (const heads of [{}, { 'Mcp-Method': 'tools/list', 'MCP-Protocol-Version': '2026-07-28' }]) {
    const answer = await ask(list, { headers: { ...heads, 'Accept-Encoding': 'gzip' } })
    t.match(
      [answer.status, answer.headers.get('content-type'), answer.headers.get('etag')],
      [200, 'application/json', null],
    )
    const message = (await answer.json()) as typeof listed
    t.strictSame(namesIn(message), ['add', 'pay'])
    t.match(message, { id: 7, result: { nextCursor: 'n', ttlMs: 1000, cacheScope: 'private' } })
  }
  t.equal(origin.seen.at(-1)?.headers['accept-encoding'], 'identity')
})

t.test('a list with nothing to hide passes byte for byte', async t => {
  const text = ` { "jsonrpc":"2.0","id":7, "result":{"cacheScope":"public","tools":[${json(tools[0])}]}}\n`
  reply = { type: 'application/json; charset=utf-8', body: write => write(text) }
  t.equal(await (await ask()).text(), text)
})

t.test('the lists in a stream of events are filtered, and everything else in it passes at once', async t => {
  const gate = Promise.withResolvers<void>()
  reply = {
    type: 'text/event-stream',
    async body(write) {
      write(`\ufeff: hello\r\nid: 1\r\ndata:\r\n\r\n${event(progress)}`)
      await gate.promise
      const text = event(listed, 'event: message\nid: 2\n')
      for (const part of [text.slice(0, 40), text.slice(40, 41), text.slice(41)]) write(part)
      write(event(progress))
    },
  }
  const answer = await ask()
  const reader = answer.body!.getReader()
  for (let first = ''; !first.includes('notifications/progress'); ) first += Buffer.from((await reader.read()).value!)
  // The list has not come yet.
  gate.resolve()
  let rest = ''
  for (let part = await reader.read(); !part.done; part = await reader.read())
    rest += Buffer.from(part.value).toString()
  const [message, last] = messagesIn(rest)
  t.strictSame(namesIn(message), ['add', 'pay'])
  t.match(rest, /event: message\nid: 2\ndata: /)
  t.strictSame(last, progress)
})

t.test('a list that comes on another stream of the server is filtered too', async t => {
  const escaped = json(listed).replace('"tools"', '"to\\u006fls"')
  for (const text of [event(progress) + event(listed), `data: ${escaped}\n\n`, `data:${escaped}\r\r`]) {
    reply = { type: 'text/event-stream', body: write => write(text) }
    const headers = { Accept: 'text/event-stream', 'Last-Event-ID': '1', 'Mcp-Session-Id': 's' }
    const stream = await gateway.proxy(token, `${origin.url}/mcp`, { headers })
    t.notMatch(await stream.text(), /wipe/)
    const call = await ask({ jsonrpc: '2.0', id: 8, method: 'tools/call', params: { name: 'add', arguments: {} } })
    t.notMatch(await call.text(), /wipe/)
  }
})

t.test('a list that cannot be read is refused, as an error of the protocol', async t => {
  const twice = json(listed).replace('"tools"', '"tools":[],"tools"')
  const long = json({ ...listed, result: { tools: [tool('add', { description: 'x'.repeat(1_048_576) })] } })
  const many = json({ ...listed, result: { tools: Array.from({ length: 1_001 }, (_, at) => tool(`t${at}`)) } })
  const bodies = { twice, long, many, broken: '{', latin: Buffer.from('"\xff"', 'latin1') }
  for (const [name, body] of Object.entries(bodies)) {
    reply = { type: 'application/json', body: write => write(body) }
    const answer = await ask()
    t.match([answer.status, answer.headers.get('gateway-error')], [200, 'tool_list_unreadable'], name)
    t.match(await answer.json(), { id: 7, error: { code: -32_010, data: { code: 'tool_list_unreadable' } } }, name)
  }
  for (const encoded of [{ 'Content-Encoding': 'gzip' }, { 'Content-Encoding': 'br' }]) {
    reply = { type: 'application/json', headers: encoded, body: write => write(gzipSync(json(listed))) }
    t.equal((await ask()).headers.get('gateway-error'), 'tool_list_unreadable')
  }
  reply = { type: 'text/event-stream', body: write => write(`data: ${twice}\n\n${event(progress)}`) }
  const events = messagesIn(await (await ask()).text())
  t.match(events, [{ id: 7, error: { code: -32_010 } }, progress])
  const lines = json(listed).replace('[', `[${'\ndata:'.repeat(10_000)}`)
  reply = { type: 'text/event-stream', body: write => write(`data: ${lines}\n\n`) }
  await t.rejects((await ask()).text(), 'a list of too many lines')
})

t.test('a request for the list is known however its method is written, and among how many messages', async t => {
  reply = { type: 'application/json', body: write => write(json(listed)) }
  const many = Array.from({ length: 101 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' }))
  const bodies = {
    slash: json(list).replace('tools/', 'tools\\/'),
    escapes: json(list).replace('tools/list', '\\u0074\\u006Fols\\u002flist'),
    batch: json([...many, list]),
    last: json(list).replace('tools/list', 'tools/lis\\u0074'),
    padded: `${json(list)}${' '.repeat(1_048_576)}`,
    long: json({ ...list, params: { _meta: { at: Array.from({ length: 10_001 }, () => 1) } } }),
  }
  for (const [name, body] of Object.entries(bodies)) {
    t.strictSame(namesIn(await (await ask(undefined, { body })).json()), ['add', 'pay'], name)
    const plain = { Accept: '*/*' }
    t.strictSame(
      namesIn(await (await ask(undefined, { body, headers: plain })).json()),
      ['add', 'pay'],
      `${name}, no MCP`,
    )
  }
})

t.test('other answers are not looked at: failures, results of tools of any length', async t => {
  reply = { type: 'text/plain', status: 404, body: write => write('gone') }
  const gone = await ask()
  t.match([gone.status, await gone.text(), gone.headers.get('etag')], [404, 'gone', '"1"'])
  const result = {
    jsonrpc: '2.0',
    id: 8,
    result: { content: [{ type: 'text', text: `"tools" ${'x'.repeat(2_000_000)}` }] },
  }
  for (const type of ['application/json', 'text/event-stream']) {
    reply = { type, body: write => write(type === 'application/json' ? json(result) : event(result)) }
    const answer = await ask({ jsonrpc: '2.0', id: 8, method: 'tools/call', params: { name: 'add', arguments: {} } })
    t.ok((await answer.text()).length > 2_000_000, type)
  }
})

t.test('each agent sees what its own policy lets it call', async t => {
  reply = { type: 'application/json', body: write => write(json(listed)) }
  const policyName = await gateway.policy({
    name: 'only-drop',
    default: 'Deny',
    rules: [
      { name: 'list', effect: 'Allow', conditions: [{ field: 'mcp.method', operator: 'eq', value: 'tools/list' }] },
      { name: 'drop', effect: 'Allow', conditions: [{ field: 'mcp.tool', operator: 'eq', value: 'drop' }] },
    ],
  })
  const other = await gateway.agent({ policyName })
  t.strictSame(namesIn(await (await ask(list, {}, other.token)).json()), ['drop'])
})

t.test('Mcp:FilterTools: false leaves the list as it is', async t => {
  const open = await startGateway(t, { config: { Policies: policies, Mcp: { FilterTools: false } } })
  const bot = await open.agent()
  const init = { method: 'POST', body: json(list), headers: mcpHeaders }
  t.equal(await (await open.proxy(bot.token, `${origin.url}/mcp`, init)).text(), json(listed))
})
