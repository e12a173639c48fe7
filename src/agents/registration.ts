import { randomUUID } from 'node:crypto'
import { chosenSecretProblem } from '../config/entropy.ts'
import type { AgentRecord, Role } from '../storage/store.ts'
import { startingTrust } from './trust.ts'

/** Roles that decide, read everything or administer. */
export function arePrivileged(roles: readonly Role[]): boolean {
  return roles.some(role => role !== 'agent')
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

/** What the audit trail keeps of an agent that comes or goes. */
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
  }
}
