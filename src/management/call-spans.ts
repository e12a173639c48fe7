/** Spans of calls of the API. */
import type { ApiOperation } from '../api/openapi.ts'
import type { Refusal } from '../base/refusals.ts'
import type { Incoming } from '../http/accept.ts'
import type { Reply } from '../http/respond.ts'
import type { Clock } from '../runtime/clock.ts'
import { knownMethod, namedMethod } from '../telemetry/tracing/span.ts'
import type { Tracing } from '../telemetry/tracing/tracing.ts'

interface CallSpanParts {
  readonly tracing: Tracing | undefined
  readonly clock: Pick<Clock, 'steady'>
  readonly operationOf: (req: Incoming['req']) => Pick<ApiOperation, 'path'> | undefined
}

type TracedCall = Pick<Incoming, 'req' | 'fields' | 'requestId'>

/** Answers a call, and records it. What it sends, such as an approved request, is part of its trace. */
export async function inSpan(
  { req, fields, requestId }: TracedCall,
  answer: () => Promise<Reply | Refusal>,
  { tracing, clock, operationOf }: CallSpanParts,
): Promise<Reply | Refusal> {
  if (tracing === undefined) return answer()
  const trace = tracing.open({ fields, agent: undefined, trace: undefined })
  const from = clock.steady()
  const reply = await tracing.during(trace, answer)
  if (!trace.isKept) return reply
  const { method = '' } = req
  const route = operationOf(req)?.path
  const { traceId, spanId, parentId } = trace
  const epoch = tracing.epoch()
  tracing.sink.take({
    ...{ traceId, spanId, parentId, hasRemoteParent: true, kind: 'server', agentId: '' },
    name: route === undefined ? namedMethod(method) : `${namedMethod(method)} ${route}`,
    ...{ startedAt: epoch + from, endedAt: epoch + clock.steady(), isError: reply.status >= 500 },
    attributes: {
      'http.request.method': knownMethod(method),
      'http.route': route,
      'http.response.status_code': reply.status,
      'error.type': 'refusal' in reply ? reply.refusal : undefined,
      'agent_gateway.request.id': requestId,
    },
  })
  return reply
}
