/**
 * What an operation has noted, written by one function in the database: no gateway holds the lock of the audit trail
 * while it waits for the network. The lock lasts until the commit is visible, so audit records and changes are numbered
 * in the order of the commits, without a gap.
 */
import { canonicalJson } from '../../base/json.ts'
import { toStorable } from '../chain.ts'
import { hooksFor, type WebhookSubscription } from '../deliveries.ts'
import type { StoreChange } from '../feed.ts'
import type { AuditEntry } from '../store.ts'
import { type HeldTotals, sumOf, type WriteNotes } from '../unit.ts'
import type { StoreHistory } from './history.ts'

/** SQLSTATE of a queue that is full; the message is the result of the operation. */
export const fullQueueState = 'GW001'
/** SQLSTATE when the database lacks what the gateway knows to be committed. */
export const lostState = 'GW002'

/** A lock of this schema alone, for one transaction at a time. */
export const schemaLock = `(1095190357::bigint << 32) + (select oid::bigint from pg_namespace where nspname = current_schema())`

export const createTables = [
  // One row. The epoch is drawn when the schema is made and when a loss of history is accepted. `lost` stops all.
  `create table fleet (
    one boolean primary key default true check (one),
    epoch uuid not null default gen_random_uuid(),
    needs text not null default '0.0.0',
    past uuid[] not null default '{}',
    lost text
  )`,
  `insert into fleet default values`,
  // The time that gateways take for the database's.
  `create function clock_ms() returns bigint language sql as 'select floor(extract(epoch from clock_timestamp()) * 1000)::bigint'`,
  `create table writes (id uuid primary key, at bigint not null, outcome text not null)`,
  `create index writes_at on writes (at)`,
  `create table changes (
    seq bigint primary key,
    at bigint not null,
    "table" text not null,
    key text not null,
    payload text,
    write uuid not null
  )`,
  `create index changes_at on changes (at)`,
  `create index changes_events on changes (seq) where "table" = 'events'`,
  // What gateways show each other: it may be lost, so it costs no write-ahead log.
  `create unlogged table notes (member uuid, n bigint, payload text not null, primary key (member, n))`,
  `create table members (
    id uuid primary key,
    beat bigint not null,
    applied bigint not null,
    name text not null,
    version text not null,
    started bigint not null,
    "fenceMs" bigint not null,
    signs text[] not null,
    accepts text[] not null,
    digests text not null,
    addresses text[] not null,
    seen bigint not null default 0,
    ahead bigint not null default 0
  ) with (fillfactor = 50)`,
]

/** The messages for webhooks, in the order of the changes. */
const leaveMessages = `insert into deliveries (id, hook, event, at, payload, "agentId")
      select coalesce((select max(id) from deliveries), 0) + row_number() over (order by place, hook), hook,
        (select epoch from fleet) || '-' || (last - json_array_length(noted) + place), (value->>'at')::bigint, value->>'now',
        value->>'agentId'
      from json_array_elements(noted) with ordinality as n(value, place),
        json_array_elements_text(value->'hooks') as h(hook);`

const countAll = `insert into hitl_totals ("agentId", waiting, bytes)
    select * from json_to_recordset(counts) as c("agentId" text, waiting integer, bytes bigint)
    union all
    select '', sum(waiting), sum(bytes) from json_to_recordset(counts) as c(waiting integer, bytes bigint)
      having count(*) > 0
    on conflict ("agentId") do update set
      waiting = hitl_totals.waiting + excluded.waiting, bytes = hitl_totals.bytes + excluded.bytes;`

const checkLimits = `for room in select value from json_array_elements(rooms) loop
    select coalesce(sum(waiting) filter (where "agentId" = ''), 0),
      coalesce(sum(waiting) filter (where "agentId" = room->>'agentId'), 0),
      coalesce(sum(bytes) filter (where "agentId" = ''), 0),
      coalesce(sum(bytes) filter (where "agentId" = room->>'agentId'), 0)
      into waiting_all, waiting_own, bytes_all, bytes_own from hitl_totals where "agentId" in ('', room->>'agentId');
    if waiting_all > (room->>'maxPending')::bigint or waiting_own > (room->>'maxPendingOfAgent')::bigint then
      select waiting_all - count(*), waiting_own - count(*) filter (where "agentId" = room->>'agentId')
        into waiting_all, waiting_own from hitl where status = 'Pending' and "expiresAt" <= (room->>'now')::bigint;
      if waiting_all > (room->>'maxPending')::bigint or waiting_own > (room->>'maxPendingOfAgent')::bigint then
        raise exception using errcode = '${fullQueueState}',
          message = case when waiting_all > (room->>'maxPending')::bigint then 'queueFull' else 'agentQueueFull' end;
      end if;
    end if;
    if bytes_all > (room->>'maxBytes')::bigint or bytes_own > (room->>'maxBytesOfAgent')::bigint then
      raise exception using errcode = '${fullQueueState}',
        message = case when bytes_all > (room->>'maxBytes')::bigint then 'bytesFull' else 'agentBytesFull' end;
    end if;
  end loop;`

/** Returns the number of the last change, null when there is none, and the newest record of the audit trail. */
export const createCommitWrite = (schema: string): string => `
create function commit_write(write_id uuid, now bigint, entries json, counts json, rooms json, noted json, known json,
  out last bigint, out trail_seq bigint, out trail_hash text)
language plpgsql security definer set search_path = ${schema}, pg_temp as $$
declare
  entry record;
  room json;
  prior record;
  waiting_all bigint;
  waiting_own bigint;
  bytes_all bigint;
  bytes_own bigint;
  number bigint;
begin
  perform pg_advisory_xact_lock(${schemaLock});
  if not exists (select from fleet where epoch = (known->>'epoch')::uuid and lost is null)
    or known->>'hash' <> coalesce((select hash from audit where seq = (known->>'seq')::bigint), '') then
    raise exception using errcode = '${lostState}', message = 'the database has lost what was written before';
  end if;
  insert into writes values (write_id, now, 'done');

  ${countAll}
  ${checkLimits}

  select seq, hash into prior from audit order by seq desc limit 1;
  for entry in select * from json_to_recordset(entries) as e(at bigint, actor text, action text, subject text,
    "requestId" text, details text, head text, tail text)
  loop
    number := coalesce(prior.seq, 0) + 1;
    insert into audit values (number, entry.at, entry.actor, entry.action, entry.subject, entry."requestId",
      entry.details, coalesce(prior.hash, repeat('0', 64)),
      encode(sha256(convert_to(coalesce(prior.hash, repeat('0', 64)) || entry.head || number || entry.tail, 'UTF8')), 'hex'))
      returning seq, hash into prior;
  end loop;
  select prior.seq, prior.hash into trail_seq, trail_hash;

  if json_array_length(noted) > 0 then
    insert into changes (seq, at, "table", key, payload, write)
      select coalesce((select max(seq) from changes), 0) + place, now, value->>'table', value->>'key', value->>'now',
        write_id
      from json_array_elements(noted) with ordinality as n(value, place);
    select max(seq) into last from changes;
    ${leaveMessages}
  end if;
end $$`

/**
 * Whoever changes or removes a request, its bytes count with it. At the end of the transaction, which has the lock of the
 * schema by then, as all have that write the counts.
 */
export const createByteCounts = (schema: string): readonly string[] => [
  `create function count_bytes() returns trigger language plpgsql as $$
declare
  change bigint := case when tg_op = 'DELETE' then 0 else new.bytes end - old.bytes;
begin
  if change <> 0 then
    update ${schema}.hitl_totals set bytes = bytes + change where "agentId" in ('', old."agentId");
  end if;
  return null;
end $$`,
  `create constraint trigger hitl_bytes after update of bytes or delete on hitl
    deferrable initially deferred for each row execute function count_bytes()`,
]

export const callCommitWrite = 'select * from commit_write($1, $2, $3, $4, $5, $6, $7)'

export interface Written {
  /** Number of the last change; null when there is none. */
  readonly last: number | null
  /** Newest record of the audit trail; null when it is empty. */
  readonly trail_seq: number | null
  readonly trail_hash: string | null
}

interface CommitWrite {
  readonly id: string
  readonly now: number
  readonly all: readonly WriteNotes[]
  readonly history: Pick<StoreHistory, 'epoch' | 'known'>
}

/** The arguments of the function, for all that was noted in one transaction. */
export function argumentsOf({ id, now, all, history }: CommitWrite): readonly unknown[] {
  const { epoch, known } = history
  const entries = all.flatMap(({ entries }) => entries.map(halvesOf))
  const counts = [...countsOf(all)].map(([agentId, totals]) => ({ agentId, ...totals }))
  const noted = all.flatMap(({ changes, subscriptions }) => changes.map(change => noteOf(change, subscriptions)))
  const allLimits = all.flatMap(({ limits }) => limits ?? [])
  return [id, now, ...[entries, counts, allLimits, noted, { epoch, ...known }].map(value => JSON.stringify(value))]
}

function noteOf(change: StoreChange, subscriptions: readonly WebhookSubscription[]) {
  const { table, key, now } = change
  const note = { table, key, now: now && JSON.stringify(now) }
  if (change.table !== 'events') return note
  const { at, type, data } = change.now
  return { ...note, at, agentId: data.agentId, hooks: hooksFor(type, subscriptions) }
}

/** One count for each agent: a row is changed once in a statement. */
function countsOf(all: readonly WriteNotes[]): ReadonlyMap<string, HeldTotals> {
  const counts = new Map<string, HeldTotals>()
  for (const [agentId, change] of all.flatMap(notes => [...notes.counts])) {
    const before = counts.get(agentId)
    counts.set(agentId, before === undefined ? change : sumOf([before, change]))
  }
  return counts
}

/** An entry, and its canonical JSON in front of its number and behind it. */
function halvesOf(given: AuditEntry) {
  const { subject, ...before } = toStorable(given)
  // Keys are sorted: seq comes behind all others but the subject.
  const head = `${canonicalJson(before).slice(0, -1)},"seq":`
  return {
    ...before,
    subject,
    details: canonicalJson(before.details),
    head,
    tail: `,"subject":${JSON.stringify(subject)}}`,
  }
}
