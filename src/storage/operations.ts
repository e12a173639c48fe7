/** The contract as functions of a connection: the same for every engine that Kysely speaks to. */
import type { Tables } from './methods.ts'
import type { Operations } from './schema.ts'
import { agents } from './tables/agents.ts'
import { audit } from './tables/audit.ts'
import { grants } from './tables/grants.ts'
import { hitl } from './tables/hitl.ts'
import { policies } from './tables/policies.ts'
import { probe } from './tables/probe.ts'

export const operations: { readonly [T in keyof Tables]: Operations<Tables[T]> } = {
  agents,
  policies,
  hitl,
  grants,
  audit,
  probe,
}
