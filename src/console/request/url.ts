/** Parts of a URL as text: nothing is decoded or repaired, since what is shown is what is sent. */
export interface Place {
  /** Scheme, host and port. */
  readonly origin: string
  readonly host: string
  readonly path: string
  /** Names and values, not decoded. */
  readonly query: readonly (readonly [name: string, value: string])[]
}

export function placeOf(url: string): Place {
  const start = url.indexOf('://') + 3
  const rest = url.slice(start)
  const end = rest.search(/[/?#]/)
  const host = end < 0 ? rest : rest.slice(0, end)
  const after = end < 0 ? '' : rest.slice(end)
  const mark = after.indexOf('?')
  const path = mark < 0 ? after : after.slice(0, mark)
  const pairs = mark < 0 ? [] : after.slice(mark + 1).split('&')
  return {
    origin: url.slice(0, start) + host,
    host,
    path: path === '' ? '/' : path,
    query: pairs.filter(pair => pair !== '').map(pairOf),
  }
}

function pairOf(pair: string): readonly [string, string] {
  const equals = pair.indexOf('=')
  return equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)]
}
