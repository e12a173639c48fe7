/** Reads the command line of curl as the request that it would send. */
import { readFileSync } from 'node:fs'
import { asError } from '../base/as-error.ts'
import type { RequestDescription } from '../policy/request/describe.ts'
import { UsageError } from './shell.ts'

type Request = RequestDescription['request']

/** What a command line says so far. */
interface CurlCall {
  method: string | undefined
  url: string | undefined
  readonly headers: Record<string, string[]>
  readonly data: string[]
  isJson: boolean
  isGet: boolean
}

type CurlOption = (call: CurlCall, value: string) => void

const addData: CurlOption = ({ data }, value) =>
  void data.push(value.startsWith('@') ? plainLines(value.slice(1)) : value)

/** Options with a value that make the request. */
const valued: Readonly<Record<string, CurlOption>> = {
  '--request': (call, value) => {
    call.method = value
  },
  '--url': (call, value) => {
    call.url = value
  },
  '--header': addHeader,
  '--data': addData,
  '--data-ascii': addData,
  '--data-raw': ({ data }, value) => void data.push(value),
  '--data-binary': ({ data }, value) => void data.push(value.startsWith('@') ? contentOf(value.slice(1)) : value),
  '--data-urlencode': ({ data }, value) => void data.push(encoded(value)),
  '--json': (call, value) => {
    call.isJson = true
    call.data.push(value.startsWith('@') ? contentOf(value.slice(1)) : value)
  },
  '--user-agent': (call, value) => setHeader(call, 'User-Agent', value),
  '--referer': (call, value) => setHeader(call, 'Referer', value),
  '--cookie': (call, value) => setHeader(call, 'Cookie', value),
  // Of credentials rules see the presence alone.
  '--user': call => setHeader(call, 'Authorization', 'Basic'),
  '--oauth2-bearer': call => setHeader(call, 'Authorization', 'Bearer'),
}

/** Options with a value that say nothing about the request. */
const ignored = new Set(
  [
    '--output',
    '--max-time',
    '--connect-timeout',
    '--retry',
    '--retry-delay',
    '--write-out',
    '--proxy',
    '--proxy-user',
  ].concat([
    '--proxy-header',
    '--cacert',
    '--cert',
    '--key',
    '--cookie-jar',
    '--resolve',
    '--max-redirs',
    '--dump-header',
    '--noproxy',
  ]),
)

/** Options without a value. */
const flags: Readonly<Record<string, (call: CurlCall) => void>> = {
  '--get': call => {
    call.isGet = true
  },
  '--head': call => {
    call.method ??= 'HEAD'
  },
  '--compressed': call => setHeader(call, 'Accept-Encoding', 'gzip'),
}

const short: Readonly<Record<string, string>> = {
  ...{ X: '--request', H: '--header', d: '--data', A: '--user-agent', e: '--referer', b: '--cookie', u: '--user' },
  ...{
    o: '--output',
    m: '--max-time',
    w: '--write-out',
    x: '--proxy',
    E: '--cert',
    c: '--cookie-jar',
    D: '--dump-header',
  },
  ...{ G: '--get', I: '--head', F: '--form', T: '--upload-file', K: '--config' },
}

/** What a body is made of that is not read here. */
const refused = ['--form', '--form-string', '--upload-file', '--config', '--next']

/**
 * The request of a command line; of a call through `/proxy/` the one that is sent on.
 *
 * @param words the words behind `curl`
 * @throws UsageError for an option that changes the request in a way that is not known
 */
export function readCurl(words: readonly string[]): Request {
  const call: CurlCall = { method: undefined, url: undefined, headers: {}, data: [], isJson: false, isGet: false }
  const rest = words.flatMap(longOptions)
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? ''
    if (!word.startsWith('--')) call.url = word
    else if (takesValue(word)) {
      const value = rest[++at]
      if (value === undefined) throw new UsageError(`curl ${word} must have a value`)
      if (Object.hasOwn(valued, word)) valued[word]?.(call, value)
    } else if (Object.hasOwn(flags, word)) flags[word]?.(call)
  }
  return requestOf(call)
}

function takesValue(option: string): boolean {
  if (refused.includes(option)) throw new UsageError(`curl ${option} is not read here: give the body with --data`)
  return Object.hasOwn(valued, option) || ignored.has(option)
}

/** `-sXPOST` is `--request` and `POST`; letters that are not known take no value. */
function longOptions(word: string): readonly string[] {
  if (word.startsWith('--') || !word.startsWith('-') || word.length < 2) return [word]
  const found: string[] = []
  for (let at = 1; at < word.length; at++) {
    const letter = word[at] ?? ''
    const option = Object.hasOwn(short, letter) ? (short[letter] ?? '') : `--${letter}`
    found.push(option)
    if (option.length === 3 || !takesValue(option)) continue
    return at + 1 < word.length ? [...found, word.slice(at + 1)] : found
  }
  return found
}

function addHeader(call: CurlCall, line: string): void {
  const [, name = '', value] = /^\s*([^:;\s]+)\s*[:;]\s*(.*)$/s.exec(line) ?? []
  if (value === undefined) throw new UsageError(`curl --header must be NAME: VALUE, not ${JSON.stringify(line)}`)
  call.headers[name] = [...(call.headers[name] ?? []), value]
}

function setHeader({ headers }: CurlCall, name: string, value: string): void {
  headers[name] = [value]
}

function requestOf(call: CurlCall): Request {
  if (call.url === undefined) throw new UsageError('curl must have a URL')
  const data = call.data.length === 0 ? undefined : call.data.join(call.isJson ? '' : '&')
  const address = upstreamOf(/^[a-z][a-z\d+.-]*:\/\//i.test(call.url) ? call.url : `http://${call.url}`)
  const url = call.isGet && data !== undefined ? withQuery(address, data) : address
  const body = call.isGet ? undefined : data
  const type = call.isJson ? 'application/json' : 'application/x-www-form-urlencoded'
  const named = Object.keys(call.headers).some(name => name.toLowerCase() === 'content-type')
  const headers = { ...call.headers, ...(body === undefined || named ? {} : { 'Content-Type': [type] }) }
  const method = call.method ?? (body === undefined ? 'GET' : 'POST')
  return { method, url, headers, ...(body === undefined ? {} : { body }) }
}

/** `https://api.example.com/x` of `http://127.0.0.1:7080/proxy/https://api.example.com/x`. */
function upstreamOf(url: string): string {
  return /^https?:\/\/[^/]+\/proxy\/(https?:\/\/.*)$/s.exec(url)?.[1] ?? url
}

function withQuery(url: string, data: string): string {
  return `${url}${url.includes('?') ? '&' : '?'}${data}`
}

/** `name=a b` is sent as `name=a%20b`, `a b` as `a%20b`. */
function encoded(value: string): string {
  const [, name, text = value] = /^([^=]*)=(.*)$/s.exec(value) ?? []
  const sent = encodeURIComponent(text)
  return name ? `${name}=${sent}` : sent
}

/** curl leaves line breaks out of files that --data names. */
const plainLines = (path: string): string => contentOf(path).replace(/[\r\n]/g, '')

function contentOf(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (error) {
    throw new UsageError(`${path} cannot be read (${asError(error).code})`)
  }
}
