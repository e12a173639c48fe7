/**
 * Metadata of OAuth resources (RFC 9728) on virtual hosts. Clients reject metadata of another resource than the one they
 * called (section 3.3), and an upstream knows only its own name.
 */
import { parseStrictJson } from '../../base/json.ts'
import { isObject } from '../../base/records.ts'
import { fieldValues } from '../../http/headers.ts'
import type { ResponseHead } from '../../upstream/handler.ts'
import type { Sendable } from '../exchange.ts'
import type { LinkedAnswer } from '../links.ts'
import type { ReaderParts } from '../parts.ts'
import { acceptsJson, isCoded } from './fields.ts'
import { HeldDocument, longestDocument } from './held-document.ts'
import type { AnswerOutput, Interest, Rewriter } from './interest.ts'
import type { AnswerReader } from './reader.ts'

const wellKnown = '/.well-known/oauth-protected-resource'
/** Documents of more values are not read as metadata. */
const maxValues = 1_000

export const metadataReader = (parts: ReaderParts): AnswerReader => ({
  wantsBody: () => false,
  interestIn(exchange) {
    const isAsked = asksForMetadata(exchange)
    return isAsked || mayBeMetadata(exchange) ? new MetadataInterest(exchange, isAsked, parts) : undefined
  },
})

/** Whether a request asks a virtual host for the metadata at its usual path. */
export function asksForMetadata({ addressing, method, target: { path } }: Sendable): boolean {
  if (addressing.standsFor === undefined || method !== 'GET') return false
  return path === wellKnown || path.startsWith(`${wellKnown}/`)
}

/** A challenge may name any path (RFC 9728 section 5.1): MCP clients send their header fields with this request too. */
function mayBeMetadata({ addressing, method, fields, rawHeaders }: Sendable): boolean {
  if (addressing.standsFor === undefined || method !== 'GET') return false
  return fields.mcpStream || (fields.acceptsEvents && acceptsJson(rawHeaders))
}

class MetadataInterest implements Interest {
  readonly wantsPlainBytes = true
  readonly #exchange: Sendable
  readonly #isAsked: boolean
  readonly #parts: ReaderParts

  constructor(exchange: Sendable, isAsked: boolean, parts: ReaderParts) {
    this.#exchange = exchange
    this.#isAsked = isAsked
    this.#parts = parts
  }

  open(head: ResponseHead, out: AnswerOutput): Rewriter | undefined {
    const { status, fields, contentLength = 0 } = head
    const type = fieldValues(fields, 'content-type').join().toLowerCase()
    const isDocument = status >= 200 && status <= 299 && status !== 204 && !type.includes('text/event-stream')
    if (!isDocument || isCoded(head) || contentLength > longestDocument) return undefined
    if (!this.#isAsked && !type.includes('json')) return undefined
    return new Metadata(this.#exchange, this.#isAsked, out, this.#parts)
  }
}

/** A document that may be metadata; longer documents are not. */
class Metadata extends HeldDocument {
  protected override mayPass(): boolean {
    return true
  }

  protected override read(whole: Buffer): Buffer {
    return onVirtualHost(whole, this.exchange)
  }
}

/** The document with the resource as the client knows it. Any other document is returned unchanged. */
function onVirtualHost(document: Buffer, exchange: LinkedAnswer): Buffer {
  const parsed = parseStrictJson(document, maxValues)
  const metadata = 'value' in parsed ? parsed.value : undefined
  const { addressing } = exchange
  if (!isObject(metadata)) return document
  const { resource } = metadata
  if (typeof resource !== 'string') return document
  const url = URL.parse(resource)
  if (url === null || url.origin !== addressing.standsFor?.key) return document
  // The rest of the URL keeps its text, since some clients compare texts.
  const rest = resource.slice(resource.indexOf('://') + 3).replace(/^[^/?#]*/, '')
  const host = addressing.hostLinkTo(new URL('/', url), exchange)?.slice(0, -1)
  return Buffer.from(JSON.stringify({ ...metadata, resource: host + rest }))
}
