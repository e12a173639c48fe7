/** Copies of agents and policies in a thread; they follow the main thread's. */
import { type TrustCause, trustScore } from '../agents/agent.ts'
import { createSnapshot } from '../agents/registry.ts'
import { prepare } from '../policies/entry.ts'
import type { CompiledPolicy } from '../policy/evaluation/compile.ts'
import type { PolicyDocument } from '../policy/language/format.ts'
import type { LanguageOptions } from '../policy/language/parse.ts'
import type { Clock } from '../runtime/clock.ts'
import { createSerialQueue } from '../runtime/serial-queue.ts'
import type { AgentRecord } from '../storage/store.ts'

/** @param onTrust passes on events that change the trust of an active agent: the main thread judges its trust */
export function createAgentReplica(
  agents: readonly AgentRecord[],
  clock: Clock,
  onTrust: (id: string, cause: TrustCause, requestId: string | null) => void,
) {
  const snapshot = createSnapshot(agents)
  return {
    ...snapshot,
    trustOf: (agent: AgentRecord) => trustScore(agent, clock.now()),
    recordTrust: onTrust,
    set: (id: string, agent: AgentRecord | undefined) => void snapshot.change(id, agent),
  }
}

/** Policies that were added or changed, and names of those that were removed. */
export interface PolicyChange {
  readonly put: readonly PolicyDocument[]
  readonly removed: readonly string[]
}

export function createPolicyReplica(language: LanguageOptions) {
  let byName: ReadonlyMap<string, { readonly compiled: CompiledPolicy }> = new Map()
  const active: { list: readonly { readonly compiled: CompiledPolicy }[] } = { list: [] }
  const inTurn = createSerialQueue()

  async function change({ put, removed }: PolicyChange): Promise<void> {
    const next = new Map(byName)
    for (const name of removed) next.delete(name)
    for (const document of put) {
      const entry = await prepare(language, { source: 'api', document, createdAt: 0, where: path => path })
      if (!('compiled' in entry)) throw new Error('cannot happen: the main thread has compiled it')
      next.set(document.name, entry)
    }
    byName = next
    active.list = [...next.values()]
  }

  return {
    get: (name: string) => byName.get(name)?.compiled,
    active,
    /** Resolves when the change is in force. Changes are applied in the order of the calls. */
    apply: (what: PolicyChange) => inTurn(() => change(what)),
  }
}
