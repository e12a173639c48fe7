/** Heads of requests to a proxy, as far as the relay must read them. The gateway reads them whole. */

/** Fields that are between a program and its proxy alone. */
const ownFields: ReadonlySet<string> = new Set(['proxy-authorization', 'proxy-connection'])

export interface RawHead {
  readonly requestLine: string
  /** As they were sent. One may have several lines. */
  readonly fields: readonly { readonly name: string; readonly line: string }[]
}

/** @param head without the empty line behind it */
export function parseHead(head: string): RawHead {
  const [requestLine = '', ...lines] = head.split('\r\n')
  const fields: { name: string; line: string }[] = []
  for (const line of lines) {
    const last = fields.at(-1)
    // A line that continues the one above goes where that goes (RFC 9112 section 5.2).
    if (/^[ \t]/.test(line) && last !== undefined) last.line += `\r\n${line}`
    else fields.push({ name: line.split(':', 1)[0]!.trim().toLowerCase(), line })
  }
  return { requestLine, fields }
}

/** The one value of a field; undefined when there is none, or more than one. */
export function fieldValue({ fields }: RawHead, name: string): string | undefined {
  const [found, ...others] = fields.filter(field => field.name === name)
  return others.length === 0 ? found?.line.slice(found.line.indexOf(':') + 1).trim() : undefined
}

/**
 * The head that the gateway gets, with the empty line behind it. A request that is not a CONNECT is the last one on its
 * connection, since the field of a further one would not be written.
 *
 * @param authorization value of `Proxy-Authorization`
 */
export function rewriteHead(head: RawHead, authorization: string): string {
  const isConnect = head.requestLine.startsWith('CONNECT ')
  const kept = head.fields.filter(({ name }) => !ownFields.has(name) && (isConnect || name !== 'connection'))
  const lines = [head.requestLine, ...kept.map(({ line }) => line), `Proxy-Authorization: ${authorization}`]
  if (!isConnect) lines.push(`Connection: ${['close', ...options(head)].join(', ')}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

/** The options of the connection, such as `Upgrade`, but for those that say how long it lives. */
const options = ({ fields }: RawHead): readonly string[] =>
  fields
    .filter(({ name }) => name === 'connection')
    .flatMap(({ line }) => line.slice(line.indexOf(':') + 1).split(','))
    .map(option => option.trim())
    .filter(option => option !== '' && !/^(keep-alive|close)$/i.test(option))
