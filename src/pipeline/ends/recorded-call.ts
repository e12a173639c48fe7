import type { Target } from '../../base/target.ts'
import { factsOf } from '../../policy/lint/examined.ts'
import type { ShapeOutcome } from '../../policy/propose/outcome.ts'
import type { DescribedRequest } from '../../policy/request/describe.ts'
import type { Facts } from '../../policy/request/facts.ts'
import { readMcpHeads } from '../../policy/request/mcp-heads.ts'
import { EvaluationTurns } from '../../policy/turns/evaluation.ts'
import type { AgentRecord } from '../../storage/store.ts'
import type { WorkTurns } from '../work-turns.ts'

/** A request that is over, as far as its shape needs it. */
export interface RecordedCall {
  readonly agent: AgentRecord
  readonly target: Target
  readonly method: string
  readonly rawHeaders: readonly string[]
  readonly hasBody: boolean
  /** Its body, which nobody changes; undefined when it is not known. */
  readonly body: Uint8Array | undefined
  readonly outcome: ShapeOutcome
  readonly isSampled: boolean
}

interface ReadCall {
  readonly request: DescribedRequest
  /** Its body is read already. */
  readonly read: Facts
}

/** Reads a request in turns of its agent: a body with thousands of names takes longer than one. */
export async function readCall(call: RecordedCall, at: number, turns: WorkTurns): Promise<ReadCall> {
  const request = describe(call, at)
  const read = factsOf(request)
  const body = new EvaluationTurns()
  while (body.take(() => read.body?.kind ?? 'none') === undefined) {
    turns.spend(body.steps)
    await turns.next(call.agent.id, true)
  }
  return { request, read }
}

/** The request as shapes are read from it: nothing of its agent, its address or its time is. */
function describe({ agent, target, method, rawHeaders, hasBody, body }: RecordedCall, now: number): DescribedRequest {
  const { origin, path, readings, query = '', url } = target
  const { id, name, ownerId, status, policyName, createdAt, tags } = agent
  return {
    head: {
      ...{ method, url, path, readings, rawPath: path, queryString: query, rawHeaders, now },
      ...{ origin: origin.key, scheme: origin.scheme, host: origin.host, port: origin.port },
      contentLength: hasBody ? (body?.byteLength ?? -1) : 0,
      mcp: readMcpHeads({ method, hasBody, rawHeaders }),
      ...{ clientIp: undefined, destination: undefined, activity: undefined },
      agent: { id, name, ownerId, status, policyName, createdAt, tags, claims: undefined, trustScore: 0 },
    },
    body: { bytes: body ?? new Uint8Array(0), complete: body !== undefined },
  }
}
