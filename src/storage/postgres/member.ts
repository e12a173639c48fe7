import { randomInt } from 'node:crypto'
import type { ClientBase } from 'pg'

/** This process among the gateways. */
export interface Self {
  /** UUID, random for each process. */
  readonly id: string
  readonly name: string
  readonly version: string
}

/** Enters this gateway among those that share the schema. It does not serve yet: others need not wait for it. */
export async function register(client: Pick<ClientBase, 'query'>, self: Self): Promise<void> {
  await client.query(
    'insert into members (id, beat, applied, name, version) values ($1, $2, -1, $3, $4) on conflict do nothing',
    [self.id, randomInt(2 ** 47), self.name, self.version],
  )
}
