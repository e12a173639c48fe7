import { parseTarget } from '../../base/target.ts'
import type { HeldRequest, ReplayResult, SendContext, SendRequest } from '../../hitl/model.ts'
import type { Clock } from '../../runtime/clock.ts'
import { newId } from '../../telemetry/tracing/sampling.ts'
import { knownMethod, namedMethod } from '../../telemetry/tracing/span.ts'
import type { Tracing } from '../../telemetry/tracing/tracing.ts'

interface ReplaySpanParts {
  readonly tracing: Tracing | undefined
  readonly clock: Clock
}

/**
 * Records the sending of an approved request whose own span was recorded: under the call of the reviewer, with a link to that
 * span. The upstream sees this span.
 */
export function withSpan(send: SendRequest, { tracing, clock }: ReplaySpanParts): SendRequest {
  if (tracing === undefined) return send
  return async (request, context) => {
    if (context.trace === undefined) return send(request, context)
    const { call } = tracing
    // The parent of a span that is recorded is recorded.
    if (call !== undefined) call.isKept = true
    const ids = { traceId: call?.traceId ?? newId(16), spanId: newId(8) }
    const from = clock.steady()
    const result = await send(
      { ...request, rawHeaders: tracing.replace(request.rawHeaders, hostOf(request), ids) },
      context,
    )
    const epoch = tracing.epoch()
    tracing.sink.take({
      ...{ ...ids, parentId: call?.spanId, kind: 'client', name: namedMethod(request.method), link: context.trace },
      ...{ startedAt: epoch + from, endedAt: epoch + clock.steady() },
      ...{ attributes: attributesOf(request, context, result), isError: isError(result), agentId: context.agentId },
    })
    return result
  }
}

function hostOf({ url }: HeldRequest): string {
  const target = parseTarget(url)
  return typeof target === 'string' ? '' : target.origin.host
}

const isError = (result: ReplayResult): boolean => result.kind !== 'answered' || result.status >= 400

function attributesOf(request: HeldRequest, { hitlId, requestId }: SendContext, result: ReplayResult) {
  const target = parseTarget(request.url)
  const refused = result.kind === 'answered' ? undefined : result.refusal
  return {
    'http.request.method': knownMethod(request.method),
    ...(typeof target !== 'string' && {
      'server.address': target.origin.host,
      'server.port': target.origin.port,
      'url.scheme': target.origin.scheme,
    }),
    'http.response.status_code': result.kind === 'answered' ? result.status : undefined,
    'error.type': refused?.failure ?? refused?.refusal,
    'agent_gateway.hitl.id': hitlId,
    'agent_gateway.request.id': requestId ?? undefined,
  }
}
