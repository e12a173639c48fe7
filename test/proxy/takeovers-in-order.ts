/** Handshakes and CONNECT behind other requests of their connection are answered in order. Threats T32, T40 and T66. */
import { createHash } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { openRaw } from '../fixtures/raw.ts'

const key = 'dGhlIHNhbXBsZSBub25jZQ=='
const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
const switching = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`
const longBytes = 16 * 2 ** 20

/** Says back what comes in a WebSocket; `/long` is a long answer, `/late` one for the test to give. */
async function startUpstream(t: Test) {
  const late: ServerResponse[] = []
  const server = createServer((req, res) => {
    if (req.url === '/late') late.push(res)
    else res.end(req.url === '/long' ? Buffer.alloc(longBytes, 'x') : 'short')
  })
  server.on('upgrade', (_, socket, head) => {
    socket.on('error', () => {})
    t.teardown(() => socket.destroy())
    socket.write(switching)
    socket.write(head)
    socket.pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, late }
}

const upstream = await startUpstream(t)
const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
const health = 'GET /health HTTP/1.1\r\nHost: g\r\n\r\n'
const login =
  'POST /tokens HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"a": "bcd"}'
const connect = 'CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n'

async function startWith(threads: number) {
  const config = { System: { Server: { Threads: threads } }, Proxy: { AllowUpgrade: ['127.0.0.1'] } }
  const gateway = await startGateway(t, { config })
  return { threads, gateway, token: (await gateway.agent()).token }
}

// All are started before the first test: the file is over when a test ends and no other one is known.
for (const { threads, gateway, token } of [await startWith(1), await startWith(2)]) {
  const to = (path: string, lines = '') =>
    `GET /proxy/${upstream.url}${path} HTTP/1.1\r\nHost: g\r\nGateway-Authorization: Bearer ${token}\r\n${lines}\r\n`
  const asks = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n`
  const handshake = to('/ws', asks)

  t.test(`a handshake opens its WebSocket after the answers before it, with ${threads} threads`, async t => {
    const cases = { 'a call': [health, 200], 'a body': [login, 400], 'a request': [to('/short'), 200] } as const
    for (const [title, [before, status]] of Object.entries(cases)) {
      const client = await openRaw(t, gateway.port)
      client.write(`${before}${handshake}ping`)
      t.strictSame(statuses(await client.until(/ping$/)), [status, 101], title)
      client.write('more')
      await client.until(/pingmore$/)
    }
  })

  t.test(`it waits behind 40 requests, as CONNECT does, with ${threads} threads`, async t => {
    for (const [last, status] of [
      [handshake, 101],
      [connect, 405],
    ] as const) {
      const client = await openRaw(t, gateway.port)
      client.write(health.repeat(40) + last)
      const all = await eventually(
        () => statuses(client.text()),
        ({ length }) => length === 41,
      )
      t.strictSame(all, [...Array(40).fill(200), status])
      client.socket.destroy()
    }
  })

  t.test(`CONNECT is refused after the answers before it, with ${threads} threads`, async t => {
    const client = await openRaw(t, gateway.port)
    client.write(to('/short') + login + connect)
    t.strictSame(statuses(await client.closed()), [200, 400, 405])
  })

  t.test(`long answers before it arrive whole, with ${threads} threads`, async t => {
    for (const [last, status] of [
      [handshake, 101],
      [connect, 405],
    ] as const) {
      const client = await openRaw(t, gateway.port)
      client.write(to('/long') + to('/long') + last)
      await eventually(
        () => client.text().length,
        length => length > 2 * longBytes,
      )
      t.strictSame(statuses(await client.until(new RegExp(`HTTP/1\\.1 ${status} `))), [200, 200, status])
      client.socket.destroy()
    }
  })

  t.test(`it is not answered when an answer before it closes the connection, with ${threads} threads`, async t => {
    for (const last of [handshake, connect]) {
      const client = await openRaw(t, gateway.port)
      client.write(health.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n') + last)
      t.strictSame(statuses(await client.closed()), [200])
    }
  })

  t.test(`nothing is read without end behind one that waits, with ${threads} threads`, async t => {
    const client = await openRaw(t, gateway.port)
    client.write(to('/late') + handshake)
    const [res] = await eventually(
      () => upstream.late.splice(0),
      ({ length }) => length > 0,
    )
    const all = 64 * 2 ** 20
    client.write(Buffer.alloc(all))
    const unsent = () => client.socket.writableLength
    let before = 0
    let times = 0
    // Sockets of the system take some megabytes.
    await eventually(unsent, left => {
      times = left === before ? times + 1 : 0
      before = left
      return times > 50
    })
    t.ok(unsent() > all / 2, `${all - unsent()} bytes were taken`)
    res?.end('late')
    t.strictSame(statuses(await client.until(/HTTP\/1\.1 101 /)), [200, 101])
    client.socket.destroy()
  })

  t.test(`a client that resets its connection after them harms nobody, with ${threads} threads`, async t => {
    for (const sent of [connect, health + connect, to('/late') + handshake, to('/late') + connect]) {
      for (let time = 0; time < 10; time++) {
        const client = await openRaw(t, gateway.port)
        client.write(sent)
        if (sent.startsWith(to('/late'))) {
          await eventually(
            () => upstream.late.splice(0),
            ({ length }) => length > 0,
          )
        }
        client.socket.resetAndDestroy()
      }
    }
    t.equal((await gateway.manage('GET', '/health')).status, 200)
  })

  t.test(
    `a client that closes its connection after them withdraws the request before, with ${threads} threads`,
    async t => {
      const policyName = await gateway.policy({ name: `held-${threads}`, default: 'Hitl' })
      const { id, token } = await gateway.agent({ policyName })
      const held = async () => JSON.parse((await gateway.manage('GET', `/hitl?agentId=${id}`)).text) as object[]
      const wait = `GET /proxy/${upstream.url}/ HTTP/1.1\r\nHost: g\r\nPrefer: wait=50\r\nGateway-Authorization: Bearer ${token}\r\n\r\n`
      for (const last of [handshake, connect]) {
        const client = await openRaw(t, gateway.port)
        client.write(wait + last)
        await eventually(held, ({ length }) => length === 1)
        client.socket.destroy()
        t.strictSame(await eventually(held, ({ length }) => length === 0), [])
      }
    },
  )

  t.test(`a handshake whose body has not come is refused, with ${threads} threads`, async t => {
    const refused = async (field: string) => {
      const client = await openRaw(t, gateway.port)
      client.write(health + to('/ws', `${asks}${field}\r\n`))
      t.strictSame(statuses(await client.closed()), [200, 400], field)
    }
    await Promise.all(['Content-Length: 4', 'Transfer-Encoding: chunked'].map(refused))
    t.equal((await gateway.manage('GET', '/health')).status, 200)
  })
}
