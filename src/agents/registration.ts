import { randomUUID } from 'node:crypto'
import { type Refusal, refuseField } from '../base/refusals.ts'
import { chosenSecretProblem } from '../config/entropy.ts'
import { isPrivileged } from '../storage/agents.ts'
import type { AgentRecord, Role } from '../storage/store.ts'
import { startingTrust } from './agent.ts'
import { secretProblem } from './secret.ts'

/** Why an agent cannot be registered with this secret. */
export function chosenProblem(agent: AgentRecord, secret: string): Refusal | undefined {
  const message = secretProblem(secret) ?? (isPrivileged(agent) ? chosenSecretProblem(secret) : undefined)
  return message === undefined ? undefined : refuseField('clientSecret', message)
}

export function rolesProblem(agent: AgentRecord | undefined, roles: readonly Role[]): Refusal | undefined {
  if (agent?.weakSecret !== true || !isPrivileged({ roles })) return undefined
  return refuseField(
    'roles',
    'must not be given to an agent with a weak client secret: POST /agents/{agentId}/rotate-secret first',
  )
}

export interface Registration {
  readonly name: string
  readonly ownerId: string
  readonly clientSecret: string
  /** UUID; random when absent. */
  readonly id?: string
  /** `agent` when absent. */
  readonly roles?: readonly Role[]
  readonly policyName?: string
  readonly externalSubject?: string
  readonly tags?: Readonly<Record<string, string>>
}

/** Facts for the audit trail when an agent is registered or removed. */
export function recorded({ name, ownerId, status, roles, policyName, externalSubject, tags }: AgentRecord) {
  return { name, ownerId, status, roles, policyName, externalSubject, tags }
}

export function newAgent(registration: Registration, now: number, defaultPolicy: string | undefined): AgentRecord {
  const { id, name, ownerId, roles, policyName, externalSubject, tags } = registration
  return {
    id: (id ?? randomUUID()).toLowerCase(),
    name,
    ownerId,
    status: 'Active',
    policyName: policyName ?? defaultPolicy ?? null,
    roles: roles === undefined ? ['agent'] : [...new Set(roles)],
    externalSubject: externalSubject ?? null,
    tags: tags ?? {},
    trustValue: startingTrust,
    trustAt: now,
    createdAt: now,
    weakSecret: chosenSecretProblem(registration.clientSecret) !== undefined,
    recording: null,
    keys: [],
  }
}
