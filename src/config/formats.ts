import { isIP } from 'node:net'
import { parseRange } from '../base/address.ts'
import { hopByHopRequest, token } from '../base/field-names.ts'
import { hitlEvents } from '../base/hitl-events.ts'
import { parseHostPattern } from '../base/host.ts'
import { parseTarget } from '../base/target.ts'
import { isTimeZone } from '../policy/language/fields/zone.ts'
import { parseWindow } from '../policy/language/operators/ordering.ts'
import { chosenSecretProblem } from './entropy.ts'
import type { TextFormat } from './setting.ts'

/** Of a setting that names a file with a secret (runtime/private-file.ts). */
export const privateFile =
  'readable by its owner alone, or owned by root and readable by a group of the gateway (0440).'

const matching =
  (shape: RegExp, problem: string): TextFormat =>
  value =>
    shape.test(value) ? undefined : problem

/** Fields that frame or route a request: a credential in them would be lost, or break it. */
const framingHeaders = new Set([...hopByHopRequest, 'content-type', 'via', 'www-authenticate'])
/** Header fields that mean something else to HTTP, so that a token in them would be lost or leak. */
const takenHeaders = new Set([...framingHeaders, 'authorization', 'cookie'])

/** RFC 9110 section 5.1, without the fields that are taken. */
export const headerName: TextFormat = value => {
  if (!token.test(value) || value.includes('_')) return 'must be a header field name of letters, digits and dashes'
  return takenHeaders.has(value.toLowerCase()) ? 'must not be a field that HTTP itself uses' : undefined
}

/** The field that a credential is sent in. */
export const credentialHeader: TextFormat = value => {
  if (!token.test(value) || value.includes('_')) return 'must be a header field name of letters, digits and dashes'
  return framingHeaders.has(value.toLowerCase()) ? 'must not be a field that frames or routes a request' : undefined
}

/** Text before a credential, such as `Bearer `. */
export const credentialPrefix = matching(/^[\x21-\x7e][\x20-\x7e]*$/, 'must be printable ASCII characters')

export const variableName = matching(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable')

/** An address, or a range such as 10.0.0.0/8 or fd00::/8. */
export const cidr: TextFormat = value => {
  return parseRange(value) === undefined ? 'must be an IP address or a range such as 10.0.0.0/8' : undefined
}

const name = /^(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*$/i

/** `unix` stands for all clients of the unix socket. */
export const peerRange: TextFormat = value =>
  value.toLowerCase() === 'unix' || cidr(value) === undefined
    ? undefined
    : 'must be an IP address, a range such as 10.0.0.0/8, or unix'

/** Permission bits of a file, `0660`. */
export const octalMode = matching(/^0?[0-7]{3}$/, 'must be three octal digits, such as 0660')

/** A host name, an IPv4 address, or an IPv6 address in brackets: as a URL has it, without a port. */
export const hostName: TextFormat = value => {
  const valid = value.startsWith('[') ? value.endsWith(']') && isIP(value.slice(1, -1)) === 6 : name.test(value)
  return valid ? undefined : 'must be a host name without scheme, port or path'
}

/** `example.com`, `*.example.com` (any name below it) or `.example.com` (both). */
export const hostPattern: TextFormat = value =>
  hostName(value.replace(/^\*?\./, '')) === undefined && parseHostPattern(value) !== undefined
    ? undefined
    : 'must be a host such as example.com or *.example.com'

/** RFC 9110 sections 5.1 and 5.5. */
export const headerLine = matching(/^[\w!#$%&'*+.^`|~-]+=[\x20-\x7e]+$/, 'must be name=value of a header field')

export const keptKind: TextFormat = value =>
  ['held', 'refused', 'failed'].includes(value) ? undefined : 'must be one of held, refused, failed'

/** A host pattern with the port that it is about, `localhost:11434`; without one it is about the usual port. */
export const hostAndPort: TextFormat = value => {
  const [, host = '', port] = /^(.*?)(?::(\d{1,5}))?$/.exec(value) ?? []
  const portValid = port === undefined || (Number(port) >= 1 && Number(port) <= 65_535)
  return portValid && hostPattern(host) === undefined
    ? undefined
    : 'must be a host such as example.com, *.example.com or example.com:8443'
}

/** An address, or a name to resolve, to listen on. */
export const listenHost: TextFormat = value =>
  isIP(value) !== 0 || name.test(value) ? undefined : 'must be an IP address or a host name'

/** An address of e-mail without a name or comment (RFC 5321 section 4.1.2); quoted local parts are not used. */
export const mailAddress = matching(
  /^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@(?:[a-z0-9-]{1,63}\.)*[a-z0-9-]{1,63}$/i,
  'must be an address such as reviews@example.com',
)

export const slackId = matching(/^[A-Z][A-Z0-9]{2,31}$/, 'must be an id such as C0123ABCD')

export const httpUrl: TextFormat = value => {
  const url = URL.parse(value)
  const plain = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.hash === ''
  return plain ? undefined : 'must be an http or https URL without user or fragment'
}

/** Scheme, host and port alone, in the spelling that targets have. */
export const originUrl: TextFormat = value => {
  const target = parseTarget(value)
  const plain = typeof target !== 'string' && target.requestTarget === '/'
  return plain ? undefined : 'must be an http or https URL of a host alone, such as https://api.example.com'
}

/** The address of an issuer of tokens (OpenID Connect Discovery 1.0 section 2). */
export const issuerUrl: TextFormat = value =>
  httpUrl(value) ?? (value.includes('?') ? 'must be a URL without query' : undefined)

export const hitlEvent: TextFormat = value =>
  hitlEvents.some(event => event === value) ? undefined : `must be one of ${hitlEvents.join(', ')}`

export const uuid = matching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, 'must be a UUID')

/** bcrypt reads no more than 72 bytes. */
export const clientSecret: TextFormat = value =>
  Buffer.byteLength(value) <= 72 ? chosenSecretProblem(value) : 'must be no longer than 72 bytes'

/** The one kind of identity provider (spec.md 5.6). */
export const provider: TextFormat = value => (value.toLowerCase() === 'jwt' ? undefined : 'must be Jwt')

/** It stands in tables, log lines and messages. */
export const memberName = matching(
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
  'must be up to 63 letters, digits, dots, dashes and underscores, and begin with a letter or digit',
)

/** Nothing in it must be quoted. PostgreSQL keeps names that begin with pg_ for itself. */
export const schemaName = matching(
  /^(?!pg_)[a-z_][a-z0-9_]{0,50}$/,
  'must be up to 51 lower-case letters, digits and underscores, and not begin with a digit or pg_',
)

/** `08:00-18:00`; an end before the start lies on the next day. */
export const hours: TextFormat = value => (parseWindow(value) === undefined ? 'must be like 08:00-18:00' : undefined)

export const timeZone: TextFormat = value =>
  isTimeZone(value) ? undefined : 'must be an IANA time zone such as Europe/Berlin'

export const currency = matching(/^[A-Z]{3}$/, 'must be three capital letters, such as USD')

/** It stands in header fields, log lines and policies. */
export const budgetName = matching(/^[a-z0-9-]{1,40}$/, 'must be up to 40 lower-case letters, digits and dashes')

/** It stands in log lines, policies and paths of the API. */
export const credentialName = matching(/^[a-z0-9-]{1,64}$/, 'must be up to 64 lower-case letters, digits and dashes')

/** A region or a service. */
export const awsName = matching(/^[a-z0-9-]{1,64}$/, 'must be lower-case letters, digits and dashes')

/** Secrets and tokens go there. */
export const httpsUrl: TextFormat = value =>
  httpUrl(value) ?? (/^https:/i.test(value) ? undefined : 'must be an https URL')

/** The first element is the program, the others its arguments. */
export const commandPart: TextFormat = value => (value === '' ? 'must not be empty' : undefined)

/** RFC 6901 section 3. */
export const jsonPointer = matching(/^(?:\/(?:[^~/]|~[01])*)+$/, 'must be a JSON pointer such as /data/key')

/** Text that a path begins with, as it is sent. */
export const pathPrefix: TextFormat = value => {
  const target = parseTarget(`https://host.example${value}`)
  return value.startsWith('/') && typeof target !== 'string' && target.query === undefined
    ? undefined
    : 'must be the beginning of a path, such as /v1/'
}

export const queryParameter = matching(/^[\w.-]{1,64}=[\x20-\x7e]{1,200}$/, 'must be NAME=VALUE')

/** A name that needs no encoding in a query. */
export const queryName = matching(/^[\w.-]{1,64}$/, 'must be up to 64 letters, digits, dots, dashes and underscores')
