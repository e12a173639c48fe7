import { type RawBuilder, sql } from 'kysely'

const columns = (bytes: RawBuilder<unknown>) => sql`
    version bigint not null,
    state text not null,
    rotates integer not null,
    sealed ${bytes} not null,
    "leaseOwner" text,
    "leaseUntil" bigint`

/** Tokens that people have granted to the gateway. */
export const storedCredentials = (bytes: RawBuilder<unknown>) => [
  sql`create table credentials (
    name text primary key,${columns(bytes)}
  )`,
]

/** One row for each account of a credential. SQLite cannot change a key: the table is made again. */
export const accounts = (bytes: RawBuilder<unknown>, canAlterKey: boolean) => [
  ...(canAlterKey
    ? [
        sql`alter table credentials add column subject text not null default ''`,
        sql`alter table credentials drop constraint credentials_pkey, add primary key (name, subject)`,
      ]
    : [
        sql`create table credentials_by_subject (
    name text not null,
    subject text not null default '',${columns(bytes)},
    primary key (name, subject)
  )`,
        sql`insert into credentials_by_subject
    select name, '', version, state, rotates, sealed, "leaseOwner", "leaseUntil" from credentials`,
        sql`drop table credentials`,
        sql`alter table credentials_by_subject rename to credentials`,
      ]),
  sql`create index credentials_subject on credentials (subject)`,
  sql`create table consents (
    hash text primary key,
    "agentId" text not null,
    "expiresAt" bigint not null,
    sealed ${bytes} not null
  )`,
]
