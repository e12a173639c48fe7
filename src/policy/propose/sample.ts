import { mark, redactText } from '../../base/redact.ts'
import { isSecretName } from '../../base/secret-names.ts'
import { parseTarget } from '../../base/target.ts'
import { secretSearch } from '../detectors/detectors.ts'
import type { IsKnown } from '../evaluation/masked.ts'
import { type DescribedRequest, type RequestDescription, requestFromDescription } from '../request/describe.ts'
import { readMcpHeads } from '../request/mcp-heads.ts'
import { findIn } from '../turns/evaluation.ts'

/** A request that can be decided again. Values of header fields that may be secrets are marks. */
export interface SampledRequest {
  readonly method: string
  readonly url: string
  readonly rawHeaders: readonly string[]
  readonly body: Uint8Array
}

/** @returns undefined for a request with a secret in its URL or body: nothing of it is kept */
export function sampleOf({ head, body }: DescribedRequest): SampledRequest | undefined {
  const { method, url, rawHeaders } = head
  if (hasSecret(url) || hasSecret(textOf(body.bytes))) return undefined
  return { method, url, rawHeaders: withoutSecrets(rawHeaders), body: body.bytes }
}

/** A member of JSON, also one whose value is an object. */
const memberName = /"([^"\\]{1,64})"\s{0,8}:/g

function hasSecret(text: string): boolean {
  if (findIn(secretSearch, text) !== undefined || redactText(text) !== text) return true
  return [...text.matchAll(memberName)].some(([, name = '']) => isSecretName(name))
}

/** As a reader of JSON sees it: names may be written with escapes. */
function textOf(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes)
  return text.includes('\\u') ? `${text}\n${unescaped(text)}` : text
}

const unescaped = (text: string) =>
  text.replace(/\\u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

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
