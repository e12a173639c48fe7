/** JSON-RPC requests of MCP clients that are held or refused. */

import t, { type Test } from 'tap'
import { eventually } from '../fixtures/gateway.ts'
import { startReview } from '../fixtures/review.ts'

const result = { jsonrpc: '2.0', id: 7, result: { content: [{ type: 'text', text: 'line\u2028line' }] } }
const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } }
const sse = (...messages: object[]) => messages.map(message => `data: ${JSON.stringify(message)}\n\n`).join('')

const review = await startReview(t, {
  answer(req, res) {
    const answers: Record<string, () => void> = {
      '/json': () => res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(result, null, 2)),
      '/events': () => res.writeHead(200, { 'Content-Type': 'text/event-stream' }).end(sse(progress, result)),
      '/batch': () =>
        res
          .writeHead(200, { 'Content-Type': 'application/json' })
          .end(JSON.stringify([result, { ...result, id: 'b' }])),
      '/gone': () => res.writeHead(404, { 'Content-Type': 'text/plain' }).end('no such session'),
      '/session': () =>
        res
          .writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 's1' })
          .end(JSON.stringify({ ...result, id: 1 })),
      '/notified': () => res.writeHead(202).end(),
    }
    req.resume().on('end', () => answers[req.url ?? '']?.())
  },
})
const { origin, newBot, waiting, approve, deny, call } = review

const request = (more: object = {}) => ({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'x' }, ...more })
const mcpHeaders = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' }

function send(token: string, path: string, body: unknown, init: RequestInit = {}): Promise<Response> {
  const headers = { ...mcpHeaders, 'Mcp-Session-Id': 's', ...init.headers }
  return review.proxy(token, origin.url + path, { method: 'POST', body: JSON.stringify(body), ...init, headers })
}

/** Messages of an event stream; comments are left out. */
async function messages(answer: Response): Promise<unknown[]> {
  const events = (await answer.text()).split(/\n\n/)
  const data = events.map(event => event.split('\n').flatMap(line => /^data: ?(.*)$/s.exec(line)?.[1] ?? []))
  return data.filter(lines => lines.length > 0).map(lines => JSON.parse(lines.join('\n')))
}

async function held(t: Test, path: string, body: unknown) {
  const bot = await newBot()
  const answer = await send(bot.token, path, body)
  t.match([answer.status, answer.headers.get('content-type')], [200, 'text/event-stream'])
  const [item] = await waiting(bot, 1)
  t.equal(answer.headers.get('gateway-hitl-id'), item!.id)
  return { bot, answer, id: item!.id }
}

t.beforeEach(() => {
  origin.seen.length = 0
})

t.test('the wait is a stream that begins at once, and a JSON answer becomes its message', async t => {
  const { answer, id } = await held(t, '/json', request())
  const reader = answer.body!.getReader()
  t.match(Buffer.from((await reader.read()).value!).toString(), /^: Waiting for review [\w-]+\n\n$/)
  await (await approve(id)).text()
  const rest = Buffer.from((await reader.read()).value!).toString()
  t.match(rest, /^event: message\ndata: \{\ndata: {3}"jsonrpc": "2.0",\n/)
  t.strictSame(JSON.parse(rest.replaceAll(/^(?:data|event: message)[:\n] ?/gm, '').trim()), result)
  t.match(origin.seen, [{ headers: { 'accept-encoding': 'identity', accept: mcpHeaders.Accept } }])
})

t.test('a call with a progress token gets a notice that it waits, and then the events of the upstream', async t => {
  const { answer, id } = await held(t, '/events', request({ params: { _meta: { progressToken: 'p' } } }))
  await (await approve(id)).text()
  const [first, ...rest] = await messages(answer)
  t.match(first, {
    method: 'notifications/progress',
    params: { progressToken: 'p', message: `Waiting for review ${id}` },
  })
  t.ok((first as typeof progress).params.progress < 0.001)
  t.strictSame(rest, [progress, result])
})

t.test('a batch gets an answer to each request; its notifications get none', async t => {
  const batch = [request(), { jsonrpc: '2.0', method: 'notifications/x' }, request({ id: 'b' })]
  const { answer, id } = await held(t, '/batch', batch)
  await (await approve(id)).text()
  t.strictSame(await messages(answer), [result, { ...result, id: 'b' }])
  const second = await held(t, '/batch', batch)
  await deny(second.id)
  t.match(await messages(second.answer), [
    { id: 7, error: {} },
    { id: 'b', error: {} },
  ])
})

t.test('a denial is an error with the reason, the comment and the id of the review', async t => {
  const { answer, id } = await held(t, '/json', request())
  await deny(id, { comment: 'not on Fridays' })
  t.match(await messages(answer), [
    {
      jsonrpc: '2.0',
      id: 7,
      error: {
        code: -32_010,
        message: 'not on Fridays',
        data: { code: 'hitl_denied', hitlId: id, comment: 'not on Fridays' },
      },
    },
  ])
  t.equal(origin.seen.length, 0)
})

t.test('an answer that is no JSON-RPC is an error that names its status', async t => {
  const { answer, id } = await held(t, '/gone', request())
  await (await approve(id)).text()
  t.match(await messages(answer), [
    { id: 7, error: { data: { code: 'answer_not_kept', upstreamStatus: 404, hitlId: id } } },
  ])
})

t.test('initialize keeps the header fields of its answer', async t => {
  const bot = await newBot()
  const answer = send(bot.token, '/session', request({ id: 1, method: 'initialize' }))
  const [item] = await waiting(bot, 1)
  await (await approve(item!.id)).text()
  t.equal((await answer).headers.get('mcp-session-id'), 's1')
  t.match(await (await answer).json(), { id: 1, result: {} })
})

t.test('notifications/cancelled of the same agent and session withdraws the request, and nothing is sent', async t => {
  const { bot, answer, id } = await held(t, '/json', request())
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } }
  const stranger = await newBot()
  const Prefer = 'respond-async'
  for (const other of [
    await send(stranger.token, '/json', cancelled, { headers: { Prefer } }),
    await send(bot.token, '/json', cancelled, { headers: { Prefer, 'Mcp-Session-Id': 'other' } }),
    await send(bot.token, '/events', cancelled, { headers: { Prefer } }),
  ]) {
    t.ok(other.headers.get('gateway-hitl-id'), 'held as any notification')
    await deny(other.headers.get('gateway-hitl-id')!)
  }
  const own = await send(bot.token, '/json', cancelled)
  t.match([own.status, await own.text(), own.headers.get('gateway-hitl-id')], [202, '', null])
  t.strictSame(await messages(answer), [])
  t.match(await (await approve(id)).json(), { status: 409, code: 'withdrawn' })
  t.equal(origin.seen.length, 0)
})

t.test('a cancellation that the policy allows from the head alone withdraws the request as well', async t => {
  const conditions = [{ field: 'input.headers.x-risky', operator: 'exists' }]
  const rules = [{ name: 'risky', effect: 'Hitl', conditions }]
  const bot = await review.agent({ policyName: await review.policy({ name: 'risky', default: 'Allow', rules }) })
  const { token } = bot
  const answer = await send(token, '/json', request(), { headers: { 'X-Risky': 'yes' } })
  const [item] = await waiting(bot, 1)
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } }
  t.equal(origin.seen.length, 0)
  t.equal((await send(token, '/json', cancelled)).status, 202)
  t.strictSame(await messages(answer), [])
  t.match(await (await approve(item!.id)).json(), { status: 409, code: 'withdrawn' })
  t.equal(origin.seen.length, 0)
  await (await send(token, '/json', cancelled)).text()
  t.equal(origin.seen.length, 1, 'there is nothing to cancel any more')
})

t.test('messages of unknown length are read up to 4 KiB for it, and longer ones are streamed', async t => {
  const conditions = [{ field: 'input.headers.x-risky', operator: 'exists' }]
  const rules = [{ name: 'risky', effect: 'Hitl', conditions }]
  const bot = await review.agent({ policyName: await review.policy({ name: 'chunked', default: 'Allow', rules }) })
  const chunked = (body: string) => ({ body: new Blob([body]).stream(), duplex: 'half' }) as RequestInit
  const answer = await send(bot.token, '/json', request(), { headers: { 'X-Risky': 'yes' } })
  await waiting(bot, 1)
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } }
  const long = JSON.stringify({ ...cancelled, filler: 'x'.repeat(200_000) })
  await (await send(bot.token, '/json', cancelled, chunked(long))).text()
  t.match(origin.seen, [{ bodyBytes: long.length, done: true }])
  t.equal((await send(bot.token, '/json', cancelled, chunked(JSON.stringify(cancelled)))).status, 202)
  t.strictSame(await messages(answer), [])
  t.equal(origin.seen.length, 1)
})

t.test('a client that closes its stream withdraws what it waits for', async t => {
  const { answer, id } = await held(t, '/json', request())
  await answer.body!.cancel()
  const status = async () => ((await (await call('GET', `/hitl/${id}`)).json()) as { status: string }).status
  t.equal(await eventually(status, found => found !== 'Pending'), 'Withdrawn')
})

t.test('an agent that is revoked while it waits gets the reason in the stream', async t => {
  const { bot, answer } = await held(t, '/json', request())
  await review.manage('POST', `/agents/${bot.id}/revoke`)
  t.match(await messages(answer), [{ id: 7, error: { data: { code: 'agent_revoked' } } }])
})

t.test('what a policy denies is an error by its id, decided from the head or the body', async t => {
  for (const conditions of [[], [{ field: 'mcp.tool', operator: 'eq', value: 'x' }]]) {
    const rules = [{ name: 'no', effect: 'Deny', reason: 'Nothing is dropped', conditions }]
    const policyName = await review.policy({ name: `deny-${conditions.length}`, default: 'Allow', rules })
    const { token } = await review.agent({ policyName })
    const answer = await send(token, '/json', request())
    t.match([answer.status, answer.headers.get('gateway-error')], [200, 'policy_denied'])
    t.match(await answer.json(), {
      id: 7,
      error: { message: /Nothing is dropped/, data: { code: 'policy_denied', status: 403 } },
    })
    const plain = await send(token, '/json', request(), { headers: { Accept: 'application/json' } })
    t.equal(plain.status, 403, 'not from an MCP client')
  }
  t.equal(origin.seen.length, 0)
})

t.test('other JSON, and notifications, are held as HTTP is', async t => {
  const bot = await newBot()
  for (const body of [
    { a: 1 },
    { jsonrpc: '2.0', method: 'notifications/x' },
    { jsonrpc: '2.0', id: 1, result: {} },
    [],
  ]) {
    const answer = await send(bot.token, '/notified', body)
    t.equal(answer.status, 202)
    await answer.body?.cancel()
  }
})

t.test('Mcp:Errors: Http treats MCP clients as others', async t => {
  const http = await startReview(t, { origin, config: { Mcp: { Errors: 'Http' } } })
  const init = { method: 'POST', body: JSON.stringify(request()), headers: mcpHeaders }
  t.equal((await http.proxy(http.bot.token, `${origin.url}/json`, init)).status, 202)
})
