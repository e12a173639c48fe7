/** Threat T33 of SECURITY.md: a client that does not read an answer without end holds little, and not for good. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { fleetSize } from '../fixtures/fleet.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const event = `data: ${'x'.repeat(16_000)}\n\n`
const streams = 20
/** What the system takes for the sockets of one stream, on both sides of the gateway and of a balancer, bytes. */
const mostOfSystem = (fleetSize === 1 ? 16 : 32) * 2 ** 20

/** Writes as long as it is read. Gives the bytes that it was rid of. */
function flood(res: ServerResponse): { sent(): number } {
  let sent = 0
  const write = () => {
    while (!res.destroyed && res.write(event, () => (sent += event.length)));
    res.once('drain', write)
  }
  res.writeHead(200, { 'Content-Type': 'text/event-stream' })
  write()
  return { sent: () => sent }
}

for (const threads of [1, 2]) {
  t.test(
    `event streams that are not read are paused, then reset, and their upstreams cancelled, ${threads} threads`,
    async t => {
      const floods: { sent(): number }[] = []
      let open = 0
      const origin = await startOrigin(t, (_, res) => {
        open += 1
        res.once('close', () => {
          open -= 1
        })
        floods.push(flood(res))
      })
      const clock = createClock(Date.now())
      const gateway = await startGateway(t, { clock, config: { System: { Server: { Threads: threads } } } })
      const { token, id } = await gateway.agent()
      const clients = await Promise.all(
        Array.from({ length: streams }, async () => {
          const client = await openRaw(t, gateway.port)
          client.socket.pause()
          client.write(
            `GET /proxy/${origin.url}/ HTTP/1.1\r\nHost: g\r\nGateway-Authorization: Bearer ${token}\r\n\r\n`,
          )
          return client
        }),
      )
      await eventually(
        () => open,
        count => count === streams,
      )
      const sent = () => floods.reduce((sum, flooded) => sum + flooded.sent(), 0)
      await eventually(
        () => {
          clock.advance(5_000)
          return open
        },
        count => count === 0,
      )
      t.equal(open, 0, 'no upstream request is left')
      t.ok(sent() < streams * mostOfSystem, `${sent()} bytes`)
      t.equal(
        await eventually(
          () => gateway.gateway.inFlight(),
          count => count === 0,
        ),
        0,
      )
      for (const { socket } of clients) {
        const end = Promise.race([once(socket, 'end'), once(socket, 'close')]).catch(error => error)
        socket.resume()
        t.match(await end, { code: 'ECONNRESET' })
      }
      const told = () => gateway.log.filter(({ limit }) => limit === 'answer_stalled')
      const [line] = await eventually(told, lines => lines.length > 0)
      t.match(line, { level: 'warn', agentId: id })
    },
  )
}
