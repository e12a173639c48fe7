/** What a client accepts (RFC 9110 section 12.5.1). */

/** A weight of RFC 9110 section 12.4.2. */
const weightPattern = /;\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*(?:;|$)/i

/**
 * Whether the client names a JSON type, and prefers no text to it. A wildcard names none: it stands for every type.
 *
 * @param accept values of the field
 */
export function prefersJson(accept: readonly string[]): boolean {
  let json = 0
  let text = 0
  for (const range of accept.join(',').toLowerCase().split(',')) {
    const [name = ''] = range.split(';')
    const type = name.trim()
    if (/^application\/(?:\S+\+)?json$/.test(type)) json = Math.max(json, weightOf(range))
    else if (type === 'text/plain' || type === 'text/*') text = Math.max(text, weightOf(range))
  }
  return json > 0 && json >= text
}

const weightOf = (range: string): number => Number(weightPattern.exec(range)?.[1] ?? 1)
