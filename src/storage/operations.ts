/** The contract as functions of a connection: the same for every engine that Kysely speaks to. */
import type { Operations, TableName } from './methods.ts'
import type { Db } from './schema.ts'
import { agents } from './tables/agents.ts'
import { audit } from './tables/audit.ts'
import { codes } from './tables/codes.ts'
import { credentials } from './tables/credentials.ts'
import { deliveries } from './tables/deliveries.ts'
import { grants } from './tables/grants.ts'
import { hitl } from './tables/hitl.ts'
import { hits } from './tables/hits.ts'
import { identities } from './tables/identities.ts'
import { messages } from './tables/messages.ts'
import { policies } from './tables/policies.ts'
import { shapes } from './tables/shapes.ts'
import { spend } from './tables/spend.ts'
import { subscriptions } from './tables/subscriptions.ts'
import { tokens } from './tables/tokens.ts'
import { tools } from './tables/tools.ts'
import type { Unit } from './unit.ts'

/** Longer than a page of SQLite, so that the probe needs free space and not only an overwrite. */
const payload = new Uint8Array(8192)

const probe: Operations<'probe'> = {
  async ping({ db }) {
    await db.insertInto('probe').values({ payload }).execute()
    await db.deleteFrom('probe').execute()
  },
}

const operations: { readonly [T in TableName]: Operations<T> } = {
  agents,
  identities,
  policies,
  hitl,
  messages,
  subscriptions,
  grants,
  tools,
  shapes,
  hits,
  spend,
  tokens,
  codes,
  credentials,
  deliveries,
  audit,
  probe,
}

export interface StoreOperation {
  readonly table: TableName
  readonly method: string
  readonly args: readonly unknown[]
}

/** Runs a method of the contract: a write on a unit of work, a read on a connection. */
export function run(on: Unit | Db, { table, method, args }: StoreOperation): Promise<unknown> {
  const methodsOf: Record<TableName, object> = operations
  // Each method of each table is such a function; an unknown name gives undefined.
  const operation = (methodsOf[table] as Record<string, (...args: unknown[]) => Promise<unknown>>)[method]
  if (operation === undefined) throw new Error(`cannot happen: no operation ${table}.${method}`)
  return operation(on, ...args)
}
