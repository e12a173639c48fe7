import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Closes connections of a peer that has as many open as it may, so that one client cannot take all there are.
 *
 * @param most 0 is no limit
 * @param peerOf what connections are counted by; those without are not counted
 */
export function limitPeers(server: Server, most: number, peerOf: (socket: Socket) => string | undefined): void {
  if (most === 0) return
  const open = new Map<string, number>()
  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket)
    if (peer === undefined) return
    const count = open.get(peer) ?? 0
    if (count >= most) {
      socket.destroy()
      return
    }
    open.set(peer, count + 1)
    socket.once('close', () => {
      const left = (open.get(peer) ?? 1) - 1
      if (left === 0) open.delete(peer)
      else open.set(peer, left)
    })
  })
}
