/** Accounts of people: whose token a request gets, and who may connect it. */
import type { CredentialSetting } from '../config/credentials.ts'
import { agentSubject, allSubject, type CredentialKey, ownerSubject, subjectFacts } from '../storage/credentials.ts'
import type { AgentRecord } from '../storage/store.ts'

/** What of an agent says which account its requests get. */
type AccountAgent = Pick<AgentRecord, 'id' | 'ownerId' | 'createdAt'>

/** Which token the requests of an agent get. */
export const keyFor = ({ Name = '', Type, Per }: CredentialSetting, agent: AccountAgent): CredentialKey => ({
  name: Name,
  subject: Type === 'Connect' ? subjects[Per](agent) : '',
})

const subjects: Readonly<Record<CredentialSetting['Per'], (agent: AccountAgent) => string>> = {
  Agent: agentSubject,
  Owner: ({ ownerId }) => ownerSubject(ownerId),
  All: () => allSubject,
}

/** Whose account a person means: as the setting says, that of an agent, of an owner, or of all. */
export interface AccountOf {
  readonly agentId?: string | undefined
  readonly ownerId?: string | undefined
}

/** Undefined when the account is not one of this credential, or its agent is not there. */
export function keyOfAccount(
  { Name: name = '', Per }: CredentialSetting,
  { agentId, ownerId }: AccountOf,
  agentOf: (id: string) => AccountAgent | undefined,
): CredentialKey | undefined {
  const agent = agentId === undefined ? undefined : agentOf(agentId)
  // The page of an agent connects what the requests of this agent get.
  if (agent !== undefined) return ownerId === undefined ? { name, subject: subjects[Per](agent) } : undefined
  if (agentId !== undefined) return undefined
  if (Per === 'Owner') return ownerId === undefined ? undefined : { name, subject: ownerSubject(ownerId) }
  return Per === 'All' && ownerId === undefined ? { name, subject: allSubject } : undefined
}

/** An admin connects accounts for all; others for themselves as owners, and for the agents that they own. */
export function mayConnect(
  person: Pick<AgentRecord, 'ownerId' | 'roles'>,
  subject: string,
  agentOf: (id: string) => AccountAgent | undefined,
): boolean {
  const { agentId, ownerId } = subjectFacts(subject)
  const agent = agentId === undefined ? undefined : agentOf(agentId)
  // It may have been removed meanwhile, and another one registered with its id.
  if (agentId !== undefined && (agent === undefined || agentSubject(agent) !== subject)) return false
  if (person.roles.includes('admin')) return true
  const owner = ownerId ?? agent?.ownerId
  return owner !== undefined && owner === person.ownerId && person.roles.some(role => role !== 'agent')
}
