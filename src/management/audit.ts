import { Readable } from 'node:stream'
import { exportTrail } from '../audit/trail.ts'
import { escapeDeceptiveIn } from '../base/deceptive.ts'
import { type FieldError, isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import { jsonReply } from '../http/respond.ts'
import type { AuditFilter, AuditRecord } from '../storage/store.ts'
import { type Handlers, type ManagementCall, textsOf, timeOrNull } from './call.ts'
import { readPage } from './list.ts'
import type { ManagementParts } from './parts.ts'

/** The audit trail, for those who look into it afterwards. */
export function auditHandlers({ store: { audit }, verification }: ManagementParts): Handlers['guarded'] {
  return {
    async listAudit(call) {
      const filter = readFilter(call)
      if (isRefusal(filter)) return filter
      const page = readPage(call)
      const before = call.query['before']
      const { items, totalCount, next } = await audit.list(
        { ...page, ...(before && { before: Number(before) }) },
        filter,
      )
      return jsonReply(200, { items: items.map(show), ...page, totalCount, next })
    },
    getAuditVerification() {
      const { verifiedAt, ...state } = verification.state()
      return jsonReply(200, { ...state, verifiedAt: timeOrNull(verifiedAt) })
    },
    exportAudit: () => ({
      status: 200,
      headers: [
        'Content-Type',
        'application/jsonl; charset=utf-8',
        'Content-Disposition',
        'attachment; filename="audit.jsonl"',
      ],
      body: Readable.from(exportTrail(audit)),
    }),
  }
}

/** For people: texts of others are escaped visibly, which the export does not do; it has the values that were hashed. */
function show(record: AuditRecord) {
  return escapeDeceptiveIn({ ...record, timestamp: new Date(record.at).toISOString() })
}

function readFilter(call: ManagementCall): AuditFilter | Refusal {
  const { actor, action, subject, from, to } = textsOf(call)
  const errors: FieldError[] = []
  const time = (field: string, text: string | undefined) => {
    if (text === undefined) return {}
    const at = Date.parse(text)
    if (Number.isNaN(at)) errors.push({ field, message: 'must be an ISO 8601 time' })
    return { [field]: at }
  }
  const filter = {
    ...(actor !== undefined && { actor }),
    ...(action !== undefined && { action }),
    ...(subject !== undefined && { subject }),
    ...time('from', from),
    ...time('to', to),
  }
  return errors.length === 0 ? filter : refuse('invalid_parameter', undefined, { errors })
}
