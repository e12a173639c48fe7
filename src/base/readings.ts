/**
 * Steps that lenient servers take with a path, beside decoding the characters that need no encoding: they take `%2f` and
 * `%3b` for the delimiters `/` and `;`, and `%5c` for a slash, cut the `;parameters` of segments, merge slashes, decode
 * twice, and accept odd escapes. Servers differ in the steps they take, and chains of servers in their order. So the result
 * of any sequence of steps is a reading of the path.
 */
const steps: readonly ((path: string) => string)[] = [
  path => path.replace(/%2f/gi, '/').replace(/%3b/gi, ';'),
  path => path.replace(/%5c/gi, '/'),
  path => path.replace(/;[^/]*/g, ''),
  path => path.replace(/\/{2,}/g, '/'),
  path => decodeUnreserved(path.replace(encodedTwice, '%')),
  path => decodeUnreserved(path.replace(oddEscape, plainEscape)),
]

/** Bounds the work. Ordinary paths have two or three readings. */
const maxReadings = 32

const unreserved = /%(2[de]|3\d|4[1-9a-f]|5[\daf]|6[1-9a-f]|7[\dae])/gi
/** `%25` in front of the digits of an unreserved character or a delimiter. */
const encodedTwice = /%25(?=(?:25)*(?:2[def]|3[\db]|4[1-9a-f]|5[\dacf]|6[1-9a-f]|7[\dae]))/gi
/** ASCII as `%u0061` (IIS), and as the overlong UTF-8 of old decoders: `%c1%a1`, `%e0%81%a1`. */
const oddEscape = /%u00([0-7][\da-f])|%(?:c|e0%8)([01])%([89ab][\da-f])/gi
const dotSegment = /\/\.{1,2}(?:\/|$)/

/**
 * Every reading of a path, the literal one first; undefined when there is only one. A string is why the path cannot be a
 * target.
 */
export function readingsOf(path: string): readonly string[] | undefined | string {
  if (!path.includes('%') && !path.includes(';') && !path.includes('//')) return undefined
  const found = new Set([decodeUnreserved(path)])
  for (const reading of found) {
    if (dotSegment.test(reading))
      return 'Some servers find dot segments in the path. Send it as it should reach the upstream.'
    if (found.size > maxReadings) return 'Servers read the path in too many ways. Encode it once, without parameters.'
    for (const step of steps) found.add(step(reading))
  }
  found.delete(path)
  return found.size === 0 ? undefined : [path, ...found]
}

function decodeUnreserved(path: string): string {
  return path.replace(unreserved, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

/** @param high and `low`: what is left of the two bytes of an overlong character, where `plain` does not say it */
function plainEscape(_: string, plain: string | undefined, high: string, low: string): string {
  const hex = plain ?? ((Number(high) << 6) | (Number.parseInt(low, 16) & 63)).toString(16)
  return `%${hex.padStart(2, '0')}`
}
