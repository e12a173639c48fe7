import { fieldValues } from '../../http/headers.ts'
import type { ResponseHead } from '../../upstream/handler.ts'

/** Whether a request takes JSON, named literally. */
export function acceptsJson(rawHeaders: readonly string[]): boolean {
  return fieldValues(rawHeaders, 'accept').join().toLowerCase().includes('application/json')
}

/** Whether the body of an answer has a content coding. */
export function isCoded({ fields }: ResponseHead): boolean {
  const coding = fieldValues(fields, 'content-encoding').join().toLowerCase()
  return coding !== '' && coding !== 'identity'
}

/** Fields that describe the bytes of a body. */
const ofBytes = new Set([
  ...['content-length', 'etag', 'last-modified', 'accept-ranges'],
  ...['content-md5', 'digest', 'content-digest', 'repr-digest'],
])

/** The fields of an answer whose body may have changed. */
export function withLength(fields: readonly string[], length: number | 'unknown'): string[] {
  const kept = fields.filter((_, i) => !ofBytes.has(fields[i - (i % 2)]!.toLowerCase()))
  return length === 'unknown' ? kept : [...kept, 'Content-Length', String(length)]
}
