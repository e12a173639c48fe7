import { type RawBuilder, sql } from 'kysely'

/** Tokens that people have granted to the gateway, one row for each account; and consents that were begun. */
export const storedCredentials = (bytes: RawBuilder<unknown>) => [
  sql`create table credentials (
    name text not null,
    subject text not null,
    version bigint not null,
    state text not null,
    rotates integer not null,
    sealed ${bytes} not null,
    "leaseOwner" text,
    "leaseUntil" bigint,
    primary key (name, subject)
  )`,
  sql`create index credentials_subject on credentials (subject)`,
  sql`create table consents (
    hash text primary key,
    "agentId" text not null,
    "expiresAt" bigint not null,
    sealed ${bytes} not null
  )`,
]
