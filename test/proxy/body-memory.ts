/** Threat T69 of SECURITY.md: memory of a body is used for another one while its upstream still reads it. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { readAhead } from '../../src/pipeline/read-ahead.ts'
import { eventually, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { openKept } from '../fixtures/kept.ts'
import { startOrigin } from '../fixtures/origin.ts'

/** More than the system takes for a peer that does not read. */
const size = 12 * 2 ** 20
const conditions = [{ field: 'input.bodyText', operator: 'contains', value: 'forbidden' }]
const reads = { name: 'reads', default: 'Allow', rules: [{ name: 'none', effect: 'Deny', conditions }] }
const open = { name: 'open', default: 'Allow', rules: [] }
const config = { Proxy: { MaxHeldBytes: 16 * size, MaxEvaluatedBodyBytes: size } }

/** An upstream that answers before it reads the body. */
async function startEarly(t: Test) {
  const sockets: Socket[] = []
  const server = createServer(socket => {
    sockets.push(socket)
    socket.once('data', head => {
      socket.pause()
      socket.unshift(head)
      // Long enough for the other requests, however busy the machine is.
      socket.write('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=60\r\nContent-Length: 0\r\n\r\n')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets }
}

async function readBody(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > size) break
  }
  const all = Buffer.concat(chunks)
  return all.subarray(all.indexOf('\r\n\r\n') + 4)
}

const post = (gateway: TestGateway, { token, url, body }: { token: string; url: string; body: string }) =>
  gateway.proxy(token, `${url}/`, { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body })

t.test('a body that is still being sent keeps its bytes, whatever comes after it', async t => {
  const early = await startEarly(t)
  const origin = await startOrigin(t, (req, res) => void req.once('end', () => res.end()))
  const gateway = await startGateway(t, { config: { System: { Server: { Threads: 1 } }, ...config } })
  await gateway.policy(reads)
  const { token, id } = await gateway.agent({ policyName: 'reads' })
  const added = t.capture(readAhead, 'add', readAhead.add)
  const removed = t.capture(readAhead, 'remove', readAhead.remove)
  t.equal((await post(gateway, { token, url: early.url, body: 'a'.repeat(size) })).status, 200)
  for (const letter of 'bcd') {
    t.equal((await post(gateway, { token, url: origin.url, body: letter.repeat(size) })).status, 200)
  }
  const undecided = Array.from({ length: 4 }, () => [id, size])
  t.strictSame([added.args(), removed.args()], [undecided, undecided], 'each counts until it is decided')
  const body = await readBody(early.sockets[0]!)
  t.equal(body.length, size)
  t.ok(body.every(code => code === 97))
})

t.test('bodies of many requests stay apart', async t => {
  const sizes = [70_000, 200_000, 900_000]
  const bodies: Buffer[] = []
  const origin = await startOrigin(t, (req, res, seen) => {
    req.once('end', () => {
      bodies.push(seen.body)
      res.end()
    })
  })
  const gateway = await startGateway(t, { config: { System: { Server: { Threads: 1 } }, ...config } })
  await gateway.policy(reads)
  const { token } = await gateway.agent({ policyName: 'reads' })
  for (let round = 0; round < 6; round++) {
    const posts = Array.from({ length: 8 }, (_, at) => {
      const body = String.fromCharCode(97 + at + round).repeat(sizes[(at + round) % sizes.length]! + at)
      return post(gateway, { token, url: origin.url, body })
    })
    for (const { status } of await Promise.all(posts)) t.equal(status, 200)
  }
  t.equal(bodies.length, 48)
  for (const body of bodies) t.ok(body.every(code => code === body[0]))
})

const digest = (body: Buffer | string) => createHash('sha256').update(body).digest('hex')

t.test('bodies that stream keep their bytes until a slow upstream has them', async t => {
  const held: IncomingMessage[] = []
  const slow = await startOrigin(t, (req, res) => {
    held.push(req.pause().once('end', () => res.end()))
  })
  const quick = await startOrigin(t, (req, res) => void req.once('end', () => res.end()))
  const gateway = await startGateway(t, { config: { System: { Server: { Threads: 1 } }, ...config } })
  await gateway.policy(open)
  const { token } = await gateway.agent({ policyName: 'open' })
  const body = Buffer.from(Array.from({ length: size }, (_, at) => 97 + (at % 25)))
  const chunked = new ReadableStream({
    start(controller) {
      controller.enqueue(body)
      controller.close()
    },
  })
  const init = { method: 'POST', headers: { 'Content-Type': 'text/plain' } }
  const posts = [
    gateway.proxy(token, `${slow.url}/`, { ...init, body }),
    gateway.proxy(token, `${slow.url}/`, { ...init, body: chunked, duplex: 'half' }),
  ]
  const others = await Promise.all(
    [...'xyz'].map(body => post(gateway, { token, url: quick.url, body: body.repeat(size) })),
  )
  for (const { status } of others) t.equal(status, 200)
  await eventually(
    () => held,
    reqs => reqs.length === 2,
  )
  for (const req of held) req.resume()
  for (const { status } of await Promise.all(posts)) t.equal(status, 200)
  t.strictSame(
    slow.seen.map(({ sha256 }) => sha256),
    [digest(body), digest(body)],
  )
})

for (const policy of [reads, open]) {
  t.test(`many long bodies at once arrive as they were sent, policy ${policy.name}`, async t => {
    const origin = await startOrigin(t, (req, res, seen) => void req.once('end', () => res.end(seen.sha256)))
    const gateway = await startGateway(t, { config: { System: { Server: { Threads: 1 } }, ...config } })
    await gateway.policy(policy)
    const { token } = await gateway.agent({ policyName: policy.name })
    const posts = Array.from({ length: 24 }, async (_, index) => {
      const body = `${index} `.repeat(500_000 + index)
      const answer = await post(gateway, { token, url: origin.url, body })
      t.equal(await answer.text(), digest(body))
    })
    await Promise.all(posts)
  })
}

t.test('bodies whose clients left before they were sent are freed without a collection', async t => {
  let asked = 0
  const { promise: found, resolve: find } = Promise.withResolvers<readonly string[]>()
  const lookup = () => {
    asked += 1
    return found
  }
  const gateway = await startGateway(t, { config: { System: { Server: { Threads: 1 } }, ...config }, lookup })
  await gateway.policy(reads)
  const { token } = await gateway.agent({ policyName: 'reads' })
  const clients = openKept(t, gateway.port, 2)
  const headers = { 'Gateway-Authorization': `Bearer ${token}`, 'Content-Type': 'text/plain' }
  const body = Buffer.alloc(size, 'x')
  const calls = clients.map((client, at) =>
    client.call(`/proxy/http://slow${at}.example/`, { method: 'POST', headers, body }),
  )
  const broken = Promise.allSettled(calls)
  const all = clients.length
  t.equal(
    await eventually(
      () => asked,
      count => count === all,
    ),
    all,
  )
  let freed = 0
  const { transfer } = ArrayBuffer.prototype
  t.teardown(() => {
    ArrayBuffer.prototype.transfer = transfer
  })
  ArrayBuffer.prototype.transfer = function (length) {
    if (this.byteLength >= size) freed += 1
    return transfer.call(this, length)
  }
  for (const client of clients) client.close()
  await broken
  find(['127.0.0.1'])
  t.equal(
    await eventually(
      () => freed,
      count => count === all,
    ),
    all,
  )
})
