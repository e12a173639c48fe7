/**
 * What is stored of a held request, in bytes. An agent could fill the disk with requests that nobody decides, that it takes
 * back, or that were decided: all of them count until they are pruned. `hitl.bytes` has the sum of a request, `hitl_totals`
 * those of its agent and of all: a new request is counted with its status, and triggers carry later changes over.
 */
import { sql } from 'kysely'
import type { HitlShownRow } from '../schema.ts'
import { statement } from '../statement.ts'
import type { HitlRecord } from '../store.ts'

/** For ids, digests, states and the entries in indexes. */
const rowBytes = 1_024

/** Of a new request. The same sum as in `measure`. */
export function bytesOf(record: HitlRecord, shown: HitlShownRow, request: Uint8Array): number {
  const { url, reason, decision, summary } = record
  const { headers, body, places } = shown
  const texts = [url, reason, decision, summary, headers, body, places]
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), rowBytes + request.byteLength)
}

const ofLine = sql<number>`octet_length(url) + octet_length(reason) + octet_length(decision) + octet_length(summary)`
const ofShown = sql<number>`(select octet_length(headers) + octet_length(body) + octet_length(places)
  from hitl_shown where hitl_shown.id = hitl.id)`
const ofSealed = sql<number>`(select coalesce(octet_length(request), 0) + coalesce(octet_length(response), 0)
  from hitl_sealed where hitl_sealed.id = hitl.id)`

/** Call it when parts of the request were stored or deleted. The lengths are read, not the values. */
export const measure = statement((db, { id }: { id: string }) =>
  db
    .updateTable('hitl')
    .set({ bytes: sql`${rowBytes} + ${ofLine} + coalesce(${ofShown}, 0) + coalesce(${ofSealed}, 0)` })
    .where('id', '=', id),
)
