import type { ErrorFormat } from '../http/error-body.ts'
import { fieldValues } from '../http/headers.ts'
import { providerOfPath } from '../policy/language/fields/llm.ts'

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
