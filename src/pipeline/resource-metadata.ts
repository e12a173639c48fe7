/**
 * Metadata of OAuth resources (RFC 9728) on virtual hosts. Clients reject metadata that names another resource than the one
 * that they called (section 3.3), and an upstream knows its own name alone.
 */
import { parseStrictJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'
import type { Links } from '../http/virtual-hosts.ts'
import { type Answered, virtualOrigin } from './links.ts'

const wellKnown = '/.well-known/oauth-protected-resource'
/** Longer answers are not read as metadata, bytes: parsing the longest answer would block the event loop. */
const mostValues = 1_000

/** Whether a request asks a virtual host for the metadata, by the path that they have as a rule. */
export function asksForMetadata(exchange: Answered, method: string): boolean {
  const { path } = exchange.target
  return mayBeMetadata(exchange, method) && (path === wellKnown || path.startsWith(`${wellKnown}/`))
}

/** A challenge may name any path (RFC 9728 section 5.1): MCP clients send their header fields with this request too. */
export function mayBeMetadata({ addressing }: Answered, method: string): boolean {
  return typeof addressing !== 'string' && method === 'GET'
}

/** The document with the resource as the client knows it. Any other document is returned unchanged. */
export function onVirtualHost(document: Buffer, exchange: Answered, links: Links): Buffer {
  const parsed = parseStrictJson(document, mostValues)
  const metadata = 'value' in parsed ? parsed.value : undefined
  const { addressing } = exchange
  if (typeof addressing === 'string' || !isObject(metadata)) return document
  const { resource } = metadata
  if (typeof resource !== 'string' || URL.parse(resource)?.origin !== addressing.upstream.key) return document
  const rest = resource.slice(resource.indexOf('://') + 3).replace(/^[^/?#]*/, '')
  return Buffer.from(JSON.stringify({ ...metadata, resource: virtualOrigin(addressing, exchange, links) + rest }))
}
