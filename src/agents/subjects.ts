import { type Refusal, refuse } from '../errors.ts'
import type { AgentRecord } from '../storage/store.ts'

/** Does `work`, which binds the agent `id` to `subject`, unless another agent has that subject or is about to. */
export type SubjectGuard = <T>(id: string, subject: string | null, work: () => Promise<T>) => Promise<T | Refusal>

/** Two agents are never bound to the same subject of the external identity provider. */
export function createSubjectGuard(bySubject: (subject: string) => AgentRecord | undefined): SubjectGuard {
  const underWay = new Set<string>()
  return async (id, subject, work) => {
    if (subject === null) return work()
    const holder = bySubject(subject)
    if (underWay.has(subject) || (holder !== undefined && holder.id !== id)) {
      return refuse('already_exists', 'Another agent is bound to this external subject.')
    }
    underWay.add(subject)
    try {
      return await work()
    } finally {
      underWay.delete(subject)
    }
  }
}
