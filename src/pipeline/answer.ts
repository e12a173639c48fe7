/** Answers of the gateway itself, in the form that the client understands. */
import type { Refusal } from '../base/refusals.ts'
import type { ErrorFormat } from '../http/error-body.ts'
import { fieldValues } from '../http/headers.ts'
import { resetConnection } from '../http/reset.ts'
import { sendRefusal } from '../http/respond.ts'
import { providerOfPath } from '../policy/language/fields/llm.ts'
import type { Exchange } from './exchange.ts'
import { inFormOfClient } from './steps/authenticate.ts'

/** Refuses an exchange, once. An exchange that was ended while it waited keeps its first answer. */
export function answer(exchange: Exchange, given: Refusal): void {
  if (exchange.refusal !== undefined) return
  const refusal = inFormOfClient(exchange, given)
  exchange.refusal = refusal.refusal
  exchange.cause = refusal.cause
  exchange.failure = refusal.failure
  const { rpc, res, hitlId, requestId, rateFields } = exchange
  if (rpc !== undefined && !res.writableEnded && (rpc.isStream || !res.headersSent)) {
    exchange.ending ??= 'refused'
    rpc.refuse(hitlId === undefined ? refusal : { ...refusal, members: { hitlId, ...refusal.members } })
    return
  }
  if (res.headersSent) exchange.ending = 'broken'
  else exchange.ending ??= 'refused'
  const { headers = [] } = refusal
  const whole = rateFields === undefined ? refusal : { ...refusal, headers: [...headers, ...rateFields] }
  const format = errorFormatOf(exchange.rawTarget, exchange.req.rawHeaders)
  sendRefusal(res, whole, requestId, { format, isUnaware: exchange.addressing.road !== undefined })
}

/**
 * In HTTP/1.0 a body without a length ends with the connection (RFC 9112 section 6.3), so only a reset shows that it is
 * truncated.
 */
export function breakOff({ req, res, socket }: Exchange): void {
  if (req.httpVersion === '1.0') resetConnection(socket)
  else res.destroy()
}

/** Hosts whose clients read errors in a special form; each entry includes its subdomains. */
const formats: readonly (readonly [string, ErrorFormat])[] = [
  ['googleapis.com', 'google'],
  ['slack.com', 'slack'],
  ['registry.npmjs.org', 'string'],
  ['registry.yarnpkg.com', 'string'],
]

const gitPath = /\/(?:info\/refs\?service=)?git-(?:upload|receive)-pack$/

const registryPath = /^\/v2\/(?:$|.+\/(?:blobs|manifests|referrers|tags)\/)/
/** A request to AWS, or to a server with its API, and the service (AWS Signature Version 4). */
const awsSignature = /^AWS4-[^ ]+ Credential=[^/]*\/\d+\/[^/]+\/([^/]+)\/aws4_request/

/** The form in which clients of this URL, valid or not, read errors; undefined: the usual form. */
export function errorFormatOf(url: string, rawHeaders: readonly string[]): ErrorFormat | undefined {
  const [, host = '', target = ''] = /^https?:\/\/([^/?#:]*)[^/?#]*([^#]*)/i.exec(url) ?? []
  const name = host.toLowerCase()
  const known = formats.find(([of]) => name === of || name.endsWith(`.${of}`))
  if (known !== undefined) return known[1]
  if (gitPath.test(target)) return 'text'
  const path = target.split('?', 1)[0]!
  if (registryPath.test(path)) return 'registry'
  const [, service] = awsSignature.exec(fieldValues(rawHeaders, 'authorization')[0] ?? '') ?? []
  if (service !== undefined) return awsFormat(service, rawHeaders)
  const provider = providerOfPath(path)
  if (provider === 'gemini') return 'google'
  return provider === 'ollama' ? 'string' : undefined
}

/** Other services speak JSON, and their clients read the member `message`. */
function awsFormat(service: string, rawHeaders: readonly string[]): ErrorFormat | undefined {
  if (service === 's3') return 's3'
  const isForm = fieldValues(rawHeaders, 'content-type').some(type =>
    type.startsWith('application/x-www-form-urlencoded'),
  )
  return isForm ? 'query' : undefined
}
