import { sql } from 'kysely'

/** Accounts of people in chats, and messages there that are edited later. */
export const chats = [
  sql`create table identities (
    provider text not null,
    team text not null,
    "user" text not null,
    "agentId" text not null references agents (id) on delete cascade,
    primary key (provider, team, "user")
  )`,
  sql`create index identities_agent on identities ("agentId")`,
  sql`create table messages (
    channel text not null,
    reference text not null,
    "hitlId" text not null references hitl (id) on delete cascade,
    state text not null,
    shown text not null,
    primary key (channel, reference)
  )`,
  sql`create index messages_request on messages ("hitlId")`,
]
