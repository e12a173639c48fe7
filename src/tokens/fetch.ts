import type { IncomingMessage, RequestOptions } from 'node:http'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import { rootCertificates } from 'node:tls'

/** Reads a small document whole. Rejects with FetchError when it cannot be had within the limits. */
export type FetchDocument = (url: URL) => Promise<Uint8Array>

export class FetchError extends Error {
  override readonly name = 'FetchError'
}

export interface FetchOptions {
  /** The checked address to connect to. Rejects when this URL may not be fetched. Default: as the system resolves. */
  readonly addressOf?: (url: URL) => Promise<string>
  /** PEM certificates trusted beside the built-in ones. */
  readonly ca?: readonly string[]
  /** For the whole exchange, milliseconds. Default 2,000. */
  readonly timeoutMs?: number
  /** Default 64 KiB. */
  readonly maxBytes?: number
}

/** GET with limits: one answer of status 200, no redirects, no compression, no kept connection. */
export function createFetch(options: FetchOptions = {}): FetchDocument {
  const { addressOf, timeoutMs = 2_000, maxBytes = 65_536 } = options
  return async url => {
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      const host = addressOf === undefined ? undefined : await within(addressOf(url), signal)
      const response = await send(url, { signal, ca: options.ca, host })
      return await read(response, maxBytes)
    } catch (error) {
      if (error instanceof FetchError) throw error
      throw new FetchError(`${url.href}: ${signal.aborted ? `no answer within ${timeoutMs} ms` : String(error)}`)
    }
  }
}

interface Connection {
  readonly signal: AbortSignal
  readonly ca: readonly string[] | undefined
  readonly host: string | undefined
}

function send(url: URL, { signal, ca, host }: Connection): Promise<IncomingMessage> {
  const name = url.hostname.replace(/^\[|\]$/g, '')
  const options: RequestOptions & { servername?: string; ca?: string[]; rejectUnauthorized?: boolean } = {
    host: host ?? name,
    port: url.port === '' ? undefined : Number(url.port),
    path: url.pathname + url.search,
    headers: { Host: url.host, Accept: 'application/json', 'Accept-Encoding': 'identity' },
    agent: false,
    signal,
    maxHeaderSize: 16_384,
  }
  if (url.protocol === 'https:') {
    // Whatever NODE_TLS_REJECT_UNAUTHORIZED says.
    options.rejectUnauthorized = true
    // The certificate must be for the name, whatever address was dialled.
    if (isIP(name) === 0) options.servername = name
    if (ca !== undefined) options.ca = [...rootCertificates, ...ca]
  }
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(options, resolve)
    request.on('error', reject)
    request.end()
  })
}

async function read(response: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    if (response.statusCode !== 200) throw new FetchError(`status ${response.statusCode}`)
    if ((response.headers['content-encoding'] ?? 'identity') !== 'identity') throw new FetchError('compressed answer')
    for await (const chunk of response as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > maxBytes) throw new FetchError(`more than ${maxBytes} bytes`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  } finally {
    response.destroy()
  }
}

function within<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    work.then(resolve, reject)
  })
}
