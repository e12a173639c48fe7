/** Where it is not 1, seconds. */
const longer: ReadonlyMap<string, number> = new Map([
  ['hitl_queue_full', 30],
  ['hitl_storage_full', 30],
  ['review_pending', 5],
  ['draining', 5],
  ['credential_unavailable', 5],
])

/** The header fields of a refusal: a 429 or 503 without `Retry-After` of its own gets the usual one. */
export function withRetryAfter(code: string, status: number, headers?: readonly string[]): typeof headers {
  if ((status !== 429 && status !== 503) || headers?.includes('Retry-After')) return headers
  return ['Retry-After', String(longer.get(code) ?? 1), ...(headers ?? [])]
}
