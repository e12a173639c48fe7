/**
 * Links that node does not know in early hints, such as two in one field, made the answer behind them a 502; so did
 * fields whose names are those of members of every object.
 */

import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { openRaw, startRawServer } from '../fixtures/raw.ts'

t.test('early hints that cannot be passed on are left out, and the answer comes', async t => {
  let link = ''
  const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
  const server = await startRawServer(t, socket => {
    socket.on('data', () => socket.write(`HTTP/1.1 103 Early Hints\r\nLink: ${link}\r\n\r\n${answer}`))
  })
  const gateway = await startGateway(t)
  const { token } = await gateway.agent()
  for (const [value, isPassedOn] of [
    ['</style.css>; rel=preload; as=style\r\nconstructor: x\r\n__proto__: y\r\ntoString: z', true],
    ['</style.css>; rel=preload; as=style', true],
    ['</style.css>; rel=preload, </code.js>; rel=preload', false],
    ['</style.css>; rel="preload prefetch"', false],
    ['', false],
  ] as const) {
    link = value
    const client = await openRaw(t, gateway.port)
    const fields = `Host: g\r\nGateway-Authorization: Bearer ${token}\r\nConnection: close\r\n`
    client.write(`GET /proxy/${server.url}/ HTTP/1.1\r\n${fields}\r\n`)
    const text = await client.closed()
    t.match(text, /HTTP\/1\.1 200 OK\r\n(?:.+\r\n)*\r\nok$/, value)
    t.equal(text.startsWith('HTTP/1.1 103 '), isPassedOn, value)
  }
})
