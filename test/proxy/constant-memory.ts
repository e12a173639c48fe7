/** Bodies of any length pass in constant memory: a gateway in a process of its own, in both directions. */
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { pipeline } from 'node:stream/promises'
import t from 'tap'
import { bodyOf } from '../../bench/lib/bytes.ts'
import { residentBytes } from '../../bench/lib/cpu.ts'
import { startGateway } from '../../bench/lib/gateway.ts'
import { benchPolicy } from '../../bench/lib/rules.ts'
import { startNodeUpstream } from '../../bench/lib/upstream.ts'
import { runs } from '../fixtures/runs.ts'

const mebibyte = 2 ** 20
/** Length of a body. */
const bytes = runs(1_024, 256) * mebibyte
/** Growth of resident memory. */
const mostGrowth = 64 * mebibyte
const sampleEveryMs = 20
const warmupRequests = 2_000

const upstream = await startNodeUpstream(undefined)
const gateway = await startGateway({ policies: [benchPolicy(100)], cores: undefined })
t.teardown(async () => {
  await gateway.process.stop()
  await upstream.process.stop()
})
const headers = { 'Gateway-Authorization': `Bearer ${gateway.token}` }

/** Bytes by which the memory of the gateway grows at most meanwhile. */
async function growthIn(transfer: () => Promise<void>): Promise<number> {
  const { pid } = gateway.process
  const before = residentBytes(pid)
  let highest = before
  const sampler = setInterval(() => {
    highest = Math.max(highest, residentBytes(pid))
  }, sampleEveryMs)
  await transfer().finally(() => clearInterval(sampler))
  return Math.max(highest, residentBytes(pid)) - before
}

/** Reads an answer of that length and drops it. */
async function download(length: number): Promise<void> {
  const request = httpRequest(`${gateway.url}/proxy/${upstream.url}/bytes/${length}`, { agent: false, headers })
  request.end()
  const { received } = await readAnswer(request)
  if (received !== length) throw new Error(`${received} bytes arrived of ${length}`)
}

/** The upstream answers with the number of bytes that it got. */
async function upload(length: number): Promise<void> {
  const fields = { ...headers, 'Content-Length': String(length) }
  const request = httpRequest(`${gateway.url}/proxy/${upstream.url}/`, {
    agent: false,
    method: 'POST',
    headers: fields,
  })
  const answer = readAnswer(request)
  await pipeline(bodyOf(length), request)
  const { text } = await answer
  if (Number(text) !== length) throw new Error(`${text} bytes arrived of ${length}`)
}

async function readAnswer(request: ReturnType<typeof httpRequest>): Promise<{ received: number; text: string }> {
  const [response] = await once(request, 'response')
  let received = 0
  let text = ''
  for await (const data of response as AsyncIterable<Buffer>) {
    received += data.length
    if (text.length < 1_000) text = (text + data.toString('latin1')).slice(0, 1_000)
  }
  if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${text}`)
  return { received, text }
}

t.test('a long answer and a long upload take no more memory than short ones', async t => {
  for (let sent = 0; sent < warmupRequests; sent++) await download(1_000)
  for (const transfer of [download, upload]) {
    const growth = await growthIn(() => transfer(bytes))
    t.ok(growth < mostGrowth, `${transfer.name}: ${growth / mebibyte} MiB`)
  }
})
