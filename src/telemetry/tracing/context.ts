/** The context of a trace in the fields of a request (W3C Trace Context). */

export interface ParentContext {
  /** 32 hexadecimal digits, lower case, not all 0. */
  readonly traceId: string
  /** 16 of them. */
  readonly spanId: string
  readonly isSampled: boolean
}

/** `00-<trace id>-<span id>-<flags>`; later versions may have more behind a further dash (section 3.2.2). */
const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Undefined for a value that is invalid: then a new trace begins (section 4.2). */
export function parseTraceparent(value: string): ParentContext | undefined {
  const [, version, traceId = '', spanId = '', flags = '', more] = form.exec(value) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/**
 * The context of a request. Undefined without the field, and when it is repeated or invalid.
 *
 * @param rawHeaders flat: name, value, name, value
 */
export function parentOf(rawHeaders: readonly string[]): ParentContext | undefined {
  let found: string | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length !== nameLength || name.toLowerCase() !== 'traceparent') continue
    if (found !== undefined) return undefined
    found = rawHeaders[i + 1]
  }
  return found === undefined ? undefined : parseTraceparent(found)
}

const nameLength = 'traceparent'.length

export const traceparent = (traceId: string, spanId: string, isSampled: boolean): string =>
  `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`

/** Fields without these, flat. @param names lower case */
export function fieldsWithout(fields: readonly string[], names: readonly string[]): string[] {
  return fields.filter((_, i) => !names.includes(fields[i - (i % 2)]!.toLowerCase()))
}
