import { redactPath } from '../../base/redact.ts'
import { parseTarget } from '../../base/target.ts'
import type { HeldRequest, ReplayResult, SendContext, SendRequest } from '../../hitl/model.ts'
import type { Log } from '../../log/log.ts'
import type { Clock } from '../../runtime/clock.ts'
import { replays } from '../../telemetry/layout.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

interface ReplayLogParts {
  readonly log: Pick<Log, 'info'>
  readonly clock: Clock
  readonly metrics: Metrics
}

/** Counts each approved request that was sent, or could not be, and writes one line for it, under the request id of the approval. */
export function withLog(send: SendRequest, { log, clock, metrics }: ReplayLogParts): SendRequest {
  return async (request, context) => {
    const start = clock.steady()
    const result = await send(request, context)
    metrics.count(replays, result.kind === 'notSent' ? 'not_sent' : result.kind)
    const ms = Math.round((clock.steady() - start) * 100) / 100
    log.info(
      { ...fieldsOf(request, context, result), ms },
      result.kind === 'notSent' ? 'an approved request was not sent' : 'an approved request was sent',
    )
    return result
  }
}

function fieldsOf(request: HeldRequest, context: SendContext, result: ReplayResult) {
  const target = parseTarget(request.url)
  const refused = result.kind === 'answered' ? undefined : result.refusal
  return {
    requestId: context.requestId ?? undefined,
    agentId: context.agentId,
    hitlId: context.hitlId,
    method: request.method,
    ...(typeof target === 'string' ? {} : { origin: target.origin.key, path: redactPath(target.path) }),
    status: result.kind === 'answered' ? result.status : undefined,
    refusal: refused?.refusal,
    cause: refused?.cause,
    failure: refused?.failure,
  }
}
