import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from '../http/node-http.ts'

/** Listens for a browser of this machine (RFC 8252 section 7.3). @param port 0: any that is free */
export async function openLoopback(port: number) {
  const server = createServer()
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  // It listens on a port.
  const redirectUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`
  return {
    /** Where the browser comes back to. */
    redirectUri,
    /** The first call that is the answer; others are refused, and it goes on waiting. Rejects when it was aborted. */
    async answer(isIt: (callback: URL) => boolean, signal: AbortSignal): Promise<URL> {
      const found = Promise.withResolvers<URL>()
      server.on('request', ({ url = '', method }, res) => {
        const callback = URL.parse(url, redirectUri)
        const isAnswer = method === 'GET' && callback?.pathname === '/callback' && isIt(callback)
        const text = isAnswer ? 'Go back to the terminal. You can close this page.' : 'This is not what is waited for.'
        // The URL holds the code.
        const fields = { 'Content-Type': 'text/plain', 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' }
        res.writeHead(isAnswer ? 200 : 400, { ...fields, Connection: 'close' }).end(text)
        if (isAnswer) found.resolve(callback)
      })
      signal.addEventListener('abort', () => found.reject(signal.reason))
      return found.promise
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
