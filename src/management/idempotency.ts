import { createHash } from 'node:crypto'
import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import { fieldValues } from '../http/headers.ts'
import type { Reply } from '../http/respond.ts'
import type { AuditFilter } from '../storage/audit.ts'
import type { Store } from '../storage/store.ts'
import type { ManagementCall } from './call.ts'

const maxKeyLength = 255

/** Latest entries among which a repeat is looked for. */
const maxLooked = 200

/** How something that has an id is created. */
interface Creation {
  /** Scope of the ids: the operation, and the object that it belongs to. */
  readonly within: readonly string[]
  /** Entries of the trail that tell what has, or had, this id: it also knows what was removed, and must not be used again. */
  readonly noted: (id: string) => AuditFilter
  /** Member of their details that is the id; without it they are of nothing else. */
  readonly idIn?: string
  /** Tells the sender of a repeat how to go on. */
  readonly onRepeat: string
  /** Answers `already_exists` when the id is in use. Without an id it makes one. */
  readonly create: (given: { readonly id?: string }) => Promise<Reply | Refusal>
}

/**
 * Creates something once for each `Idempotency-Key` of a caller. The id is made from caller and key: so the database itself
 * refuses the second one in any gateway, and nothing is kept for a key. The answer of the first call, which shows a secret,
 * cannot be had again: a repeat is refused with the id in `created`.
 */
export async function createOnce(
  { audit }: Pick<Store, 'audit'>,
  call: ManagementCall,
  { noted, idIn, ...creation }: Creation,
): Promise<Reply | Refusal> {
  const key = readIdempotencyKey(call)
  if (isRefusal(key)) return key
  if (key === undefined) return creation.create({})
  const id = idFrom([...creation.within, call.caller.agent.id, key])
  const detail = `This Idempotency-Key was used before. ${creation.onRepeat}`
  const wasCreated = async () => {
    const { items } = await audit.list({ page: 1, pageSize: maxLooked }, noted(id))
    return items.some(({ details }) => idIn === undefined || details[idIn] === id)
  }
  const repeat = refuse('already_exists', detail, { members: { created: id } })
  if (await wasCreated()) return repeat
  const lost = call.problemNow()
  if (lost !== undefined) return lost
  const reply = await creation.create({ id })
  const isTaken = isRefusal(reply) && reply.refusal === 'already_exists'
  // The same call may have come twice at once.
  return isTaken && (await wasCreated()) ? repeat : reply
}

/** The `Idempotency-Key` of a call; undefined when it has none. */
export function readIdempotencyKey({ req }: ManagementCall): string | undefined | Refusal {
  const [key, ...more] = fieldValues(req.rawHeaders, 'idempotency-key')
  if (more.length > 0) return refuse('invalid_request', 'A request must have at most one Idempotency-Key header.')
  if (key === undefined || (key !== '' && key.length <= maxKeyLength)) return key
  const message = `must have 1 to ${maxKeyLength} characters`
  return refuse('invalid_parameter', undefined, { errors: [{ field: 'Idempotency-Key', message }] })
}

/** A UUID of version 8 (RFC 9562 section 5.8). */
function idFrom(parts: readonly string[]): string {
  const bytes = createHash('sha256').update(JSON.stringify(parts)).digest()
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
