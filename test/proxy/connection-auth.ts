/** Threat T21 of SECURITY.md: NTLM and Negotiate authenticate a connection, which must then serve one agent alone. */
import type { Socket } from 'node:net'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startHttp2Gateway } from '../fixtures/gateway-http2.ts'
import { startHttp2 } from '../fixtures/origin-http2.ts'
import { startRawServer } from '../fixtures/raw.ts'

/** Says whose rights a request has: those of the first credentials on its connection. */
function mailbox(fields: string) {
  const owners = new Map<Socket, string>()
  return (socket: Socket): void => {
    socket.on('data', data => {
      const named = /^authorization: negotiate (\S+)/im.exec(data.toString('latin1'))?.[1]
      if (named !== undefined) owners.set(socket, named)
      const text = `mail of ${owners.get(socket) ?? 'nobody'}`
      socket.write(`HTTP/1.1 200 OK\r\n${fields}Content-Length: ${text.length}\r\n\r\n${text}`)
    })
  }
}

for (const [what, fields] of [
  ['the agent alone says so', ''],
  ['the upstream says so too', 'WWW-Authenticate: Negotiate oRQ\r\nPersistent-Auth: true\r\n'],
] as const) {
  t.test(`no agent acts with what another has authenticated a connection with: ${what}`, async t => {
    const server = await startRawServer(t, mailbox(fields))
    const gateway = await startGateway(t, { config: { System: { Server: { Threads: 1 } } } })
    const [a, b] = [await gateway.agent(), await gateway.agent()]
    const texts = []
    for (const [agent, headers] of [
      [b, {}],
      [a, { Authorization: 'Negotiate alice' }],
      [b, {}],
    ] as const) {
      texts.push(await (await gateway.proxy(agent.token, `${server.url}/`, { headers })).text())
    }
    t.strictSame(texts, ['mail of nobody', 'mail of alice', 'mail of nobody'])
  })
}

t.test('a request that authenticates its connection goes over HTTP/1.1, alone, where others share HTTP/2', async t => {
  const origin = await startHttp2(t)
  const { send } = await startHttp2Gateway(t)
  t.equal(await (await send(`${origin.url}/`)).text(), 'hello over h2')
  for (const count of [1, 2]) {
    const answer = await send(`${origin.url}/`, { headers: { Authorization: 'NTLM TlRM' } })
    t.equal(await answer.text(), 'hello over http/1.1')
    t.equal(origin.connections.http1, count)
  }
  t.equal(origin.connections.h2, 1)
})

t.test('an HTTP/2 connection whose upstream offers to authenticate it takes no more requests', async t => {
  const origin = await startHttp2(t, (stream, _seen, headers) => {
    stream.respond({ ':status': 401, ...(headers[':path'] === '/ntlm' ? { 'www-authenticate': 'NTLM' } : {}) })
    stream.end()
  })
  const { send } = await startHttp2Gateway(t)
  const counts = []
  for (const path of ['/', '/', '/ntlm', '/']) {
    await (await send(`${origin.url}${path}`)).text()
    counts.push(origin.connections.h2)
  }
  t.strictSame(counts, [1, 1, 1, 2])
})
