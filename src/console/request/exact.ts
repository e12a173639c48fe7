import { call, type Result } from '../api.ts'
import type { HitlRequest } from '../types.ts'

/** A request with the exact bytes of its body: as text they would be changed to make all of them visible. */
export async function readRequest(id: string): Promise<Result<HitlRequest>> {
  const path = `/hitl/${encodeURIComponent(id)}?bodyEncoding=base64`
  const answer = await call<{ readonly pending: HitlRequest }>('GET', path)
  return answer.ok ? { ...answer, data: answer.data.pending } : answer
}
