/** What a client accepts (RFC 9110 section 12.5.1). */

/** A weight of RFC 9110 section 12.4.2. */
const weightPattern = /;\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*(?:;|$)/i

/**
 * Whether the client names a JSON type, and prefers no text to it.
 *
 * @param accept values of the field
 * @param byDefault whether a wildcard, or no field, stands for JSON; else it names nothing
 */
export function prefersJson(accept: readonly string[], byDefault = false): boolean {
  let json = byDefault && accept.length === 0 ? 1 : 0
  let text = 0
  for (const range of accept.join(',').toLowerCase().split(',')) {
    const [name = ''] = range.split(';')
    const type = name.trim()
    const isJson = /^application\/(?:\S+\+)?json$/.test(type) || (byDefault && /^(?:\*|application)\/\*$/.test(type))
    if (isJson) json = Math.max(json, weightOf(range))
    else if (type === 'text/plain' || type === 'text/*') text = Math.max(text, weightOf(range))
  }
  return json > 0 && json >= text
}

const weightOf = (range: string): number => Number(weightPattern.exec(range)?.[1] ?? 1)
