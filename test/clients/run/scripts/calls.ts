/**
 * The modes of a client of Node.js, over what its library can do. Arguments: the URL, the mode, and a file that `up` sends.
 * The exit code is 0 when the server's answer came, and came whole.
 */
import { createHash } from 'node:crypto'

export interface Calls {
  /** One request; gives the status and the text. */
  call(url: string, method: string, body: string | undefined): Promise<readonly [status: number, text: string]>
  /** The body of an answer as it comes. */
  stream(url: string): AsyncIterable<Uint8Array | string>
  /** Sends a file; gives the text of the answer. */
  up(url: string, file: string): Promise<string>
}

export async function main({ call, stream, up }: Calls): Promise<void> {
  const [, , url = '', mode, file = ''] = process.argv
  if (mode === 'up') console.log(await up(url, file))
  else if (mode === 'down') console.log(await measure(stream(url)))
  else if (mode === 'stream' || mode === 'revoked') for await (const chunk of stream(url)) console.log(textOf(chunk))
  else {
    const [status, text] = await (mode === 'held' ? call(url, 'POST', 'hello') : call(url, 'GET', undefined))
    console.log(status, text)
    process.exitCode = status === 200 ? 0 : 1
  }
}

const textOf = (chunk: Uint8Array | string): string =>
  typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()

async function measure(chunks: AsyncIterable<Uint8Array | string>): Promise<string> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of chunks) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return `${bytes} ${hash.digest('hex')}`
}
