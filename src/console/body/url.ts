/** Parts of a URL as text: nothing is decoded or repaired, since what is shown is what is sent. */
import { pairsOf } from './form.ts'

export interface Place {
  /** Scheme, host and port. */
  readonly origin: string
  readonly host: string
  readonly path: string
  /** Names and values, not decoded; undefined where there is no equals sign. */
  readonly query: readonly (readonly [name: string, value: string | undefined])[]
}

export function placeOf(url: string): Place {
  const start = url.indexOf('://') + 3
  const rest = url.slice(start)
  const end = rest.search(/[/?#]/)
  const host = end < 0 ? rest : rest.slice(0, end)
  const after = end < 0 ? '' : rest.slice(end)
  const mark = after.indexOf('?')
  const path = mark < 0 ? after : after.slice(0, mark)
  return {
    origin: url.slice(0, start) + host,
    host,
    path: path === '' ? '/' : path,
    query: mark < 0 ? [] : queryOf(after.slice(mark + 1)),
  }
}

function queryOf(text: string): Place['query'] {
  return pairsOf(text).map(({ name, value }) => [
    text.slice(name.from, name.to),
    value && text.slice(value.from, value.to),
  ])
}
