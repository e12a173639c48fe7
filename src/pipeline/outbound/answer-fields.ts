import { passFields } from '../../http/headers.ts'
import { fieldName, type Lead } from '../../http/names.ts'
import { type LinkedAnswer, linkTo } from '../links.ts'

/**
 * The fields of an upstream's answer as the client gets them, flat. A client that follows a link sends its header fields
 * along, the gateway's token too: so links lead through the gateway. Cookies get a path below `/proxy/<origin>`, so that no
 * other upstream receives them. Fields that would apply to the whole origin of the gateway are renamed. docs/requests.md has
 * the table.
 */
export function answerFields(received: readonly string[], exchange: LinkedAnswer): string[] {
  const fields: string[] = []
  const leads = passFields(received, fields)
  if (exchange.credentials !== undefined) renameChallenges(fields)
  if (leads && exchange.addressing.road !== undefined) return withoutOthers(fields)
  if (leads) leadThroughGateway(fields, exchange)
  // A browser may have sent this credential by itself. Its answer must not become a page in the origin of the console.
  if (exchange.addressing.sharesOrigin && exchange.tokenNames.includes('authorization')) {
    fields.push('Content-Security-Policy', 'sandbox')
  }
  return fields
}

/**
 * Clients of the forward proxy see the upstream as it is. But they would take fields of a proxy for the gateway's, and
 * `Alt-Svc` would send them past the gateway.
 */
function withoutOthers(fields: readonly string[]): string[] {
  return fields.filter((_, i) => !notForClients.has(fieldName(fields[i - (i % 2)]!).lower))
}

const notForClients: ReadonlySet<string> = new Set(['alt-svc', 'proxy-authenticate', 'proxy-authentication-info'])

/**
 * The status of an upstream's answer as the client gets it. A client of the forward proxy would take 407 for the gateway's, and
 * send its token again.
 *
 * @param fields those that the client gets; the status of the upstream is added when it is replaced
 */
export function answerStatus(status: number, { addressing }: LinkedAnswer, fields: string[]): number {
  if (status !== 407 || addressing.road === undefined) return status
  fields.push(`${upstreamPrefix}Status`, String(status))
  return 502
}

function leadThroughGateway(fields: string[], exchange: LinkedAnswer): void {
  const { length } = fields
  for (let i = 0; i < length; i += 2) {
    const { leads } = fieldName(fields[i]!)
    if (leads !== undefined && !isPassed(leads, exchange)) replace(fields, i, rewrites[leads])
  }

  /** A link whose value changes stays readable under another name. A cookie must not: it would be kept twice. */
  function replace(fields: string[], at: number, rewrite: Rewrite): void {
    const [name, value] = [fields[at]!, fields[at + 1]!]
    const rewritten = rewrite(value, exchange)
    if (rewritten === undefined) fields[at] = upstreamPrefix + name
    else if (rewritten !== value) {
      if (fieldName(name).leads !== 'cookie') fields.push(upstreamPrefix + name, value)
      fields[at + 1] = rewritten
    }
  }
}

/** The client does not have the credential that a challenge asks for: the gateway adds it. */
function renameChallenges(fields: string[]): void {
  for (let i = 0; i < fields.length; i += 2) {
    if (fieldName(fields[i]!).lower === 'www-authenticate') fields[i] = upstreamPrefix + fields[i]
  }
}

const upstreamPrefix = 'Gateway-Upstream-'

/** Whether the addressing of the request leaves such fields unchanged. */
const isPassed = (leads: Lead, { addressing }: LinkedAnswer): boolean =>
  leads === 'proxy' || (leads === 'origin' && !addressing.sharesOrigin)

/** Undefined when the client must not act on the field. */
type Rewrite = (value: string, exchange: LinkedAnswer) => string | undefined

const rewrites: Readonly<Record<Lead, Rewrite>> = {
  location: linkTo,
  link: linkField,
  refresh,
  cookie: scopedCookie,
  challenge,
  host: () => undefined,
  origin: () => undefined,
  proxy: value => value,
}

/** A target in angle brackets, then parameters, whose quoted strings may contain commas (RFC 8288 section 3). */
const linkValue = /[\s,]*(?:<([^<>]*)>((?:[^",<]|"(?:[^"\\]|\\.)*")*)(?=,|$)|$)/y

/** The links that can be followed through the gateway, with their parameters; undefined when there are none. */
export function linkField(value: string, exchange: LinkedAnswer): string | undefined {
  const kept: string[] = []
  linkValue.lastIndex = 0
  while (linkValue.lastIndex < value.length) {
    const found = linkValue.exec(value)
    if (found === null) return undefined
    const [, reference, parameters = ''] = found
    const link = reference === undefined ? undefined : linkTo(reference, exchange)
    if (link !== undefined) kept.push(`<${link}>${parameters.trimEnd()}`)
  }
  return kept.length === 0 ? undefined : kept.join(', ')
}

/** `5; url=https://example.com/`, as browsers read it. */
const refreshStart = /^([\d.]+)\s*(?:[;,]\s*)?(?:url\s*=\s*)?(["']?)/i

function refresh(value: string, exchange: LinkedAnswer): string | undefined {
  const text = value.trim()
  const [start, seconds, quote = ''] = refreshStart.exec(text) ?? []
  if (start === undefined) return undefined
  const rest = text.slice(start.length)
  const end = quote === '' ? -1 : rest.indexOf(quote)
  const reference = end < 0 ? rest : rest.slice(0, end)
  if (reference === '') return value
  const link = linkTo(reference, exchange)
  return link && `${seconds}; url=${link}`
}

/**
 * A client whose credential for the gateway was in `Authorization` would answer the challenge of an upstream with that
 * credential, and send it to the address that the challenge names. On a virtual host the metadata of OAuth (RFC 9728
 * section 5.1) is found there.
 */
function challenge(value: string, exchange: LinkedAnswer): string | undefined {
  if (exchange.tokenNames.includes('authorization')) return undefined
  return value.replace(/(\bresource_metadata=")([^"]*)"/i, (whole, name: string, text: string) => {
    const url = URL.parse(text)
    const rewritten = url === null ? undefined : exchange.addressing.hostLinkTo(url, exchange)
    return rewritten === undefined ? whole : `${name}${rewritten}"`
  })
}

/**
 * Removes `Domain`, and puts `Path` below the path of the upstream. Under `/proxy/` a cookie without a usable path gets the
 * one that the client would have given it (RFC 6265 section 5.1.4), since there it would be the path of another upstream.
 * Other attributes keep their bytes and order.
 */
function scopedCookie(cookie: string, { target, addressing }: LinkedAnswer): string {
  const [pair = '', ...attributes] = cookie.split(';')
  const kept = attributes.filter(attribute => nameOf(attribute) !== 'domain')
  const usual = addressing.cookiePath('', target)
  if (usual === undefined) return [pair, ...kept].join(';')
  const scoped = kept.map(attribute => {
    if (nameOf(attribute) !== 'path') return attribute
    const [name = '', ...value] = attribute.split('=')
    return `${name}=${addressing.cookiePath(value.join('=').trim(), target)}`
  })
  if (!kept.some(attribute => nameOf(attribute) === 'path')) scoped.push(` Path=${usual}`)
  return [pair, ...scoped].join(';')
}

const nameOf = (attribute: string): string => attribute.split('=', 1)[0]!.trim().toLowerCase()
