/** The contract as functions of a connection: the same for every engine that Kysely speaks to. */
import type { Operations, TableName } from './methods.ts'
import { agents } from './tables/agents.ts'
import { audit } from './tables/audit.ts'
import { grants } from './tables/grants.ts'
import { hitl } from './tables/hitl.ts'
import { policies } from './tables/policies.ts'
import { tools } from './tables/tools.ts'

/** Longer than a page, so that the probe needs free space and not only an overwrite. */
const payload = new Uint8Array(8192)

const probe: Operations<'probe'> = {
  async ping({ db }) {
    await db.insertInto('probe').values({ payload }).execute()
    await db.deleteFrom('probe').execute()
  },
}

export const operations: { readonly [T in TableName]: Operations<T> } = {
  agents,
  policies,
  hitl,
  grants,
  tools,
  audit,
  probe,
}
