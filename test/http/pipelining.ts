/** Threat T32 of SECURITY.md: requests that are sent ahead of their answers are not read without end. */
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import t from 'tap'
import { holdBack } from '../../src/http/pipelining.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { openRaw } from '../fixtures/raw.ts'

const request = 'GET /health HTTP/1.1\r\nHost: g\r\n\r\n'
/** More than is read at once. */
const many = 10_000
const mostRead = Math.ceil(65_536 / request.length) + 16

/** A server that answers when told. */
async function start(t: Test, stallMs: number) {
  const waiting: ServerResponse[] = []
  let came = 0
  const server = createServer((req, res) => {
    came += 1
    if (res.socket === null) holdBack(req.socket, res, stallMs)
    waiting.push(res)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, waiting, came: () => came }
}

t.test('a connection is not read while many of its requests wait, and read on when they are answered', async t => {
  const { port, waiting, came } = await start(t, 60_000)
  const client = await openRaw(t, port)
  client.write(request.repeat(many))
  await eventually(came, count => count >= 16)
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  t.ok(came() <= mostRead * 2, `${came()} requests were read`)
  await eventually(
    () => {
      for (const res of waiting.splice(0)) res.end('ok')
      return came()
    },
    count => count === many,
  )
  t.equal(came(), many)
})

t.test('a client that takes nothing meanwhile is cut off', async t => {
  const { port, came } = await start(t, 20)
  const client = await openRaw(t, port)
  client.write(request.repeat(many))
  await client.closed()
  t.ok(came() <= mostRead * 2)
})

t.test('pipelined calls of the gateway are all answered, in order', async t => {
  const gateway = await startGateway(t)
  const client = await openRaw(t, gateway.port)
  client.write(request.repeat(500))
  const answers = () => client.text().split('HTTP/1.1 200 OK').length - 1
  t.equal(await eventually(answers, count => count === 500), 500)
})
