/** How credentials stand in a request, and how their values are kept out of its answer. */
import { isTokenField } from '../http/headers.ts'

/** The part of a request in which credentials stand. */
export interface CredentialMessage {
  /** Path and query. */
  readonly path: string
  /** Flat: name, value, name, value. */
  readonly fields: readonly string[]
}

/** Where a credential stands, as the entry in `Upstreams` says: a header field, or a parameter of the query. */
export interface CredentialPlace {
  readonly header: string
  readonly query: string | undefined
}

/** The request with a credential in its place; what stood there is removed. */
export function withCredential({ path, fields }: CredentialMessage, place: CredentialPlace, value: string) {
  if (place.query !== undefined) return { path: withParameter(path, place.query, value), fields }
  const kept: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i]!
    if (!isTokenField(name, place.header)) kept.push(name, fields[i + 1]!)
  }
  kept.push(place.header, value)
  return { path, fields: kept }
}

function withParameter(path: string, name: string, value: string): string {
  const [start, query] = splitQuery(path)
  const others = query.split('&').filter(pair => pair !== '' && !isParameter(pair, name))
  return `${start}?${[...others, `${name}=${encodeURIComponent(value)}`].join('&')}`
}

/** Whether the agent sends a parameter of this name itself. @param query undefined when there is none */
export const hasParameter = (query: string | undefined, name: string): boolean =>
  query?.split('&').some(pair => isParameter(pair, name)) ?? false

/** Servers decode names, and some take them in any letter case. */
function isParameter(pair: string, name: string): boolean {
  const [[found = ''] = []] = new URLSearchParams(pair)
  return found.toLowerCase() === name.toLowerCase()
}

/** @param path path and query */
export function splitQuery(path: string): readonly [start: string, query: string] {
  const at = path.indexOf('?')
  return at < 0 ? [path, ''] : [path.slice(0, at), path.slice(at + 1)]
}

/** Shorter values stand in many fields by chance. */
const leastEcho = 8
const redacted = '[redacted]'

/**
 * The fields of an answer without the values that were added to its request: an upstream that echoes them would reveal them.
 */
export function withoutEchoes(
  fields: readonly string[],
  values: readonly string[],
): { fields: string[]; echoes: number } {
  const searched = values
    .filter(({ length }) => length >= leastEcho)
    .flatMap(value => [value, encodeURIComponent(value)])
  let echoes = 0
  const kept = fields.map((text, at) => {
    if (at % 2 === 0) return text
    const clean = searched.reduce((rest, value) => rest.replaceAll(value, redacted), text)
    if (clean !== text) echoes += 1
    return clean
  })
  return { fields: kept, echoes }
}
