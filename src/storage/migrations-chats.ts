import { type RawBuilder, sql } from 'kysely'

/** Accounts of people in chats, messages there that are edited later, and browsers that get pushes. */
export const chats = (bytes: RawBuilder<unknown>) => [
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
  sql`create table push_key (one integer primary key, sealed ${bytes} not null)`,
  sql`create table push_browsers (
    id text primary key,
    "agentId" text not null references agents (id) on delete cascade,
    endpoint text not null,
    p256dh text not null,
    auth text not null,
    "createdAt" bigint not null
  )`,
  sql`create index push_browsers_agent on push_browsers ("agentId")`,
]
