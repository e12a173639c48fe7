/**
 * Two requests are the same when method, target, body and header fields are equal. Fields that differ between attempts, such
 * as Date, are not compared.
 */
import type { HeldRequest } from './model.ts'
import { frameRequest } from './seal.ts'

/** Fields of one attempt, one trace or one moment, and the preferred delivery of the answer (RFC 7240). */
const ofOneAttempt = new Set([
  'idempotency-key',
  'prefer',
  'date',
  'user-agent',
  'traceparent',
  'tracestate',
  'baggage',
  'sentry-trace',
  'uber-trace-id',
  'b3',
  'x-amzn-trace-id',
  'x-cloud-trace-context',
  'request-id',
  'correlation-id',
  'x-request-id',
  'x-correlation-id',
  'x-retry-count',
  'x-stripe-client-telemetry',
  'x-goog-api-client',
  // A session may be renewed between two attempts. Only the first request is sent anyway.
  'cookie',
  'amz-sdk-request',
  'amz-sdk-invocation-id',
])
const ofOneAttemptPrefixes = ['x-b3-', 'x-datadog-', 'x-stainless-']

/** SHA-256, hex, over the compared parts. The order of fields with different names is ignored. */
export function repeatDigestOf(request: HeldRequest): string {
  const fields: (readonly [string, string])[] = []
  for (let index = 0; index + 1 < request.rawHeaders.length; index += 2) {
    const name = request.rawHeaders[index]!.toLowerCase()
    if (isOfOneAttempt(name)) continue
    fields.push([name, request.rawHeaders[index + 1]!])
  }
  // Stable: lines of one name keep their order (RFC 9110 section 5.3).
  fields.sort(([a], [b]) => (a < b ? -1 : Number(a > b)))
  return frameRequest({ ...request, rawHeaders: fields.flat() }).digest
}

function isOfOneAttempt(name: string): boolean {
  return ofOneAttempt.has(name) || ofOneAttemptPrefixes.some(prefix => name.startsWith(prefix))
}
