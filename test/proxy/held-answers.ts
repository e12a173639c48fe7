/** Threat T31 of SECURITY.md: answers of MCP servers that are held to be read take memory as held bodies do. */
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { megabytesInUse } from '../fixtures/memory.ts'
import { startRawServer } from '../fixtures/raw.ts'
import { scrape } from '../fixtures/scrape.ts'

const mebibyte = 1_048_576
const gateway = await startGateway(t, {
  alone: 'the memory for bodies is a gateway’s own',
  // A quarter of it for one agent.
  config: {
    System: { Server: { Threads: 1 } },
    Proxy: { MaxHeldBytes: 8 * mebibyte, MaxEvaluatedBodyBytes: 131_072 },
    HumanInTheLoop: { MaxStoredBodyBytes: 131_072 },
  },
})
const bot = await gateway.agent()
const sockets: Socket[] = []
let head = ''
const server = await startRawServer(t, socket => {
  sockets.push(socket)
  socket.once('data', () => socket.write(head))
})

const answerHead = (type: string) =>
  `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
const ofOne = (text: string) => [...text].map(chunk).join('')

const asked = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })

function list(signal: AbortSignal | null = null): Promise<Response> {
  const headers = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' }
  return gateway.proxy(bot.token, `${server.url}/mcp`, { method: 'POST', headers, body: asked, signal })
}

const held = async () =>
  scrape((await gateway.manage('GET', '/metrics')).text).values.get('agent_gateway_held_body_bytes') ?? -1

/** Waits until so many bytes of answers are held, beside the requests for them. */
async function isHeld(t: Test, bytes: number, requests = 1): Promise<void> {
  const expected = bytes + requests * asked.length
  t.equal(await eventually(held, now => now === expected), expected)
}

t.test('an answer in chunks of one byte takes the memory of its bytes', async t => {
  const size = 300_000
  for (const type of ['application/json', 'text/event-stream']) {
    head = answerHead(type) + ofOne(`data: ${'x'.repeat(size - 6)}`)
    const left = new AbortController()
    const before = megabytesInUse()
    // The answer is kept: without it the stream would be cancelled.
    const answer = list(left.signal).catch(() => undefined)
    await isHeld(t, size)
    const more = megabytesInUse() - before
    t.ok(more < 10, `${type}: ${more} MB`)
    left.abort()
    await answer
    await isHeld(t, 0, 0)
  }
})

t.test('an event that has not ended counts as held, and no more once it has passed', async t => {
  head = answerHead('text/event-stream')
  const answer = await list()
  const reader = answer.body?.getReader()
  const text = `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'x', params: { pad: 'x'.repeat(500_000) } })}`
  for (let round = 0; round < 6; round++) {
    sockets.at(-1)?.write(chunk(text))
    await isHeld(t, text.length)
    sockets.at(-1)?.write(chunk('\n\n'))
    await isHeld(t, 0)
    for (let got = 0; got < text.length; ) got += (await reader?.read())?.value?.length ?? text.length
  }
  sockets.at(-1)?.destroy()
  await isHeld(t, 0, 0)
})

t.test('one agent cannot have more of them held than bodies', async t => {
  head = answerHead('text/event-stream') + chunk(`data: ${'x'.repeat(900_000)}`)
  const answers = await Promise.all([list(), list(), list()])
  const texts = answers.map(answer => answer.text().catch(() => 'broken off'))
  t.equal(await Promise.race(texts), 'broken off')
  const told = () => gateway.log.find(({ limit }) => limit === 'agent_held_bytes')
  t.match(await eventually(told, line => line !== undefined), { agentId: bot.id })
  for (const socket of sockets) socket.destroy()
  await Promise.all(texts)
  await isHeld(t, 0, 0)
})
