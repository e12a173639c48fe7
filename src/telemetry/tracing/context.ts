/** The context of a trace in the fields of a request (W3C Trace Context). */

export interface ParentContext {
  /** 32 hexadecimal digits, lower case, not all 0. */
  readonly traceId: string
  /** 16 of them. */
  readonly spanId: string
  readonly isSampled: boolean
}

/** `00-<trace id>-<span id>-<flags>`, no id all 0; later versions may have more behind a further dash (section 3.2.2). */
const form = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$/
const lengthOfFirst = 55

/** Undefined for a value that is invalid: then a new trace begins (section 4.2). */
export function parseTraceparent(value: string): ParentContext | undefined {
  if (!form.test(value) || (value.length > lengthOfFirst && value.startsWith('00'))) return undefined
  const isSampled = (Number.parseInt(value.slice(53, lengthOfFirst), 16) & 1) === 1
  return { traceId: value.slice(3, 35), spanId: value.slice(36, 52), isSampled }
}

export const traceparent = (traceId: string, spanId: string, isSampled: boolean): string =>
  `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`

/** Fields without these, flat. @param names lower case */
export function fieldsWithout(fields: readonly string[], names: readonly string[]): string[] {
  return fields.filter((_, i) => !names.includes(fields[i - (i % 2)]!.toLowerCase()))
}
