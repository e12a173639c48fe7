import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'

/** A port that leads to another one as a network would that takes `ms` there and back. */
export async function startSlowNetwork(to: number, ms: number): Promise<{ readonly port: number; close(): void }> {
  const server = createServer({ noDelay: true }, near => {
    const far = connect({ port: to, host: '127.0.0.1', noDelay: true })
    for (const [from, other] of [
      [near, far],
      [far, near],
    ] as const) {
      // Timers of one length fire in their order.
      from.on('data', data => setTimeout(() => other.write(data), ms / 2))
      from.on('error', () => {})
      from.on('close', () => other.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // It listens on a port, not on a path.
  const { port } = server.address() as AddressInfo
  return { port, close: () => server.close() }
}
