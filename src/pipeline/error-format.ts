import type { ErrorFormat } from '../http/error-body.ts'
import { providerOfPath } from '../policy/language/fields/llm.ts'

/** Hosts whose clients read errors in a special form; each entry includes its subdomains. */
const formats: readonly (readonly [string, ErrorFormat])[] = [
  ['googleapis.com', 'google'],
  ['slack.com', 'slack'],
  ['registry.npmjs.org', 'string'],
  ['registry.yarnpkg.com', 'string'],
]

const gitPath = /\/(?:info\/refs\?service=)?git-(?:upload|receive)-pack$/

/** The form in which clients of this URL, valid or not, read errors; undefined: the usual form. */
export function errorFormatOf(url: string): ErrorFormat | undefined {
  const [, host = '', target = ''] = /^https?:\/\/([^/?#:]*)[^/?#]*([^#]*)/i.exec(url) ?? []
  const name = host.toLowerCase()
  const known = formats.find(([of]) => name === of || name.endsWith(`.${of}`))
  if (known !== undefined) return known[1]
  if (gitPath.test(target)) return 'text'
  const provider = providerOfPath(target.split('?', 1)[0]!)
  if (provider === 'gemini') return 'google'
  return provider === 'ollama' ? 'string' : undefined
}
