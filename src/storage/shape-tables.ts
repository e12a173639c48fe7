import { type RawBuilder, sql } from 'kysely'

/** Part of the first step of the schema: it is never changed once it was released. */
export const shapeTables = (bytes: RawBuilder<unknown>) => [
  sql`create table agent_shapes (
    "agentId" text not null references agents (id) on delete cascade,
    digest text not null,
    "lastAt" bigint not null,
    "firstAt" bigint not null,
    count bigint not null,
    probation integer not null,
    shape text not null,
    outcome text not null,
    "values" text not null,
    fields text not null,
    days text not null,
    primary key ("agentId", digest)
  )`,
  sql`create index agent_shapes_last on agent_shapes ("lastAt")`,
  sql`create table shape_gaps (
    "agentId" text primary key references agents (id) on delete cascade,
    since bigint not null,
    "lastAt" bigint not null
  )`,
  sql`create index shape_gaps_last on shape_gaps ("lastAt")`,
  sql`create table agent_samples (
    id text primary key,
    "agentId" text not null references agents (id) on delete cascade,
    digest text not null,
    at bigint not null,
    bytes bigint not null,
    sealed ${bytes} not null
  )`,
  sql`create index agent_samples_shape on agent_samples ("agentId", digest)`,
  sql`create index agent_samples_at on agent_samples (at)`,
  sql`create table rule_hits (
    policy text not null,
    rule text not null,
    version text not null,
    day bigint not null,
    count bigint not null,
    primary key (policy, rule, version, day)
  )`,
  sql`create index rule_hits_day on rule_hits (day)`,
]
