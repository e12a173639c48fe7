import { type RawBuilder, sql } from 'kysely'

/** Tokens that people have granted to the gateway. */
export const storedCredentials = (bytes: RawBuilder<unknown>) => [
  sql`create table credentials (
    name text primary key,
    version bigint not null,
    state text not null,
    rotates integer not null,
    sealed ${bytes} not null,
    "leaseOwner" text,
    "leaseUntil" bigint
  )`,
]
