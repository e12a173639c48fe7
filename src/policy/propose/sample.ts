import { isUtf8 } from 'node:buffer'
import { mark } from '../../base/redact.ts'
import { isSecretName } from '../../base/secret-names.ts'
import { parseTarget } from '../../base/target.ts'
import type { IsKnown } from '../evaluation/masked.ts'
import { type DescribedRequest, type RequestDescription, requestFromDescription } from '../request/describe.ts'
import { readMcpHeads } from '../request/mcp-heads.ts'
import { hasSecret, parseJson } from './sample-secrets.ts'

/** A request that can be decided again. Values of header fields that may be secrets are marks. */
export interface SampledRequest {
  readonly method: string
  readonly url: string
  readonly rawHeaders: readonly string[]
  readonly body: Uint8Array
}

/** @returns undefined for a request in whose URL or body a secret is found, or may be: nothing of it is kept */
export function sampleOf({ head, body }: DescribedRequest): SampledRequest | undefined {
  const { method, url, rawHeaders } = head
  const text = readBody(body.bytes, rawHeaders)
  if (text === undefined || hasSecret(url) || hasSecret(text)) return undefined
  return { method, url, rawHeaders: withoutSecrets(rawHeaders), body: body.bytes }
}

/** The text of a body; undefined when it cannot be searched: it is not UTF-8, or not the JSON that its type says. */
function readBody(bytes: Uint8Array, rawHeaders: readonly string[]): string | undefined {
  if (!isUtf8(bytes)) return undefined
  const text = new TextDecoder().decode(bytes)
  const isJson = rawHeaders.some(
    (value, at) => at % 2 === 1 && /^content-type$/i.test(rawHeaders[at - 1] ?? '') && /json/i.test(value),
  )
  return isJson && text !== '' && parseJson(text) === undefined ? undefined : text
}

function withoutSecrets(rawHeaders: readonly string[]): readonly string[] {
  return rawHeaders.map((text, at) => {
    if (at % 2 === 0) return text
    const isSecret = isSecretName(rawHeaders[at - 1] ?? '') || hasSecret(text)
    return isSecret ? mark : text
  })
}

/** The request of a sample. @param at milliseconds since the epoch; undefined when it is none that the gateway would take */
export function requestOfSample(
  { method, url, rawHeaders, body }: SampledRequest,
  agent: NonNullable<RequestDescription['agent']>,
  at: number,
): DescribedRequest | undefined {
  if (typeof parseTarget(url) === 'string') return undefined
  const made = requestFromDescription({ request: { method, url }, agent }, at)
  if ('problem' in made) return undefined
  const hasBody = body.byteLength > 0
  const mcp = readMcpHeads({ method, hasBody, rawHeaders })
  const head = { ...made.head, rawHeaders, mcp, contentLength: body.byteLength }
  return { head, body: { bytes: body, complete: true } }
}

const ofRequest =
  /^(?:input\.(?!clientIp$|destination|headers\b)|mcp\.|llm\.|graphql\.|time\.|agent\.(?:id|name|ownerId|owner|policyName|ageHours|tags\b))/
const plainField = /^input\.headers\.([\w-]+)$/

/** Which conditions the request of a sample answers as the request did: not those on what was hidden, or is of that moment. */
export function knownBySample({ rawHeaders }: SampledRequest): IsKnown {
  const hidden = new Set(rawHeaders.filter((_, at) => rawHeaders[at + 1] === mark).map(name => name.toLowerCase()))
  return ({ field }) => {
    if (!field.startsWith('input.headers')) return ofRequest.test(field)
    const name = plainField.exec(field)?.[1]
    return hidden.size === 0 || (name !== undefined && !hidden.has(name.toLowerCase()))
  }
}
