import type { IncomingMessage } from 'node:http'

/** Whether an answer may have the content coding gzip (RFC 9110 section 12.5.3). */
export function acceptsGzip({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return /(^|,)\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*(,|$))|,|$)/i.test(String(headers['accept-encoding'] ?? ''))
}
