import type { ServerResponse } from 'node:http'

/** Node keeps the text of a head here, and the time in its `Keep-Alive`. Its types do not show it; tests check that it is so. */
export type WithHead = ServerResponse & { _header?: string | null; _keepAliveTimeout?: number }

/** Undoes `writeHead` as long as node has written nothing, so that another head can be written. */
export function takeBackHead(res: WithHead): void {
  res._header = null
  res.statusMessage = ''
}
