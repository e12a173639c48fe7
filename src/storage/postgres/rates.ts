/**
 * Buckets of rate limits that all gateways share. A gateway leases tokens from them. The table is not logged: after a
 * crash of the server every bucket is full once more.
 */
import { type LeaseAnswer, type LeaseCall, leaseMs, reportMs } from '../../limits/lease.ts'
import type { DatabaseConnections } from './connection.ts'

export const createRates = `create unlogged table rates (
    key text primary key,
    tokens double precision not null,
    at double precision not null,
    held double precision not null,
    before double precision not null,
    turned double precision not null,
    "fullAt" double precision not null
  ) with (fillfactor = 50)`

/**
 * Leases tokens for each ask; `limits/leased-bucket.ts` says what an ask is. Tokens that are leased take space in the bucket
 * until their gateway reports them, and between one and two times `leaseMs` when it never does: those of this time and those
 * of the time before are counted apart.
 */
export const createLeaseTokens = (schema: string): string => `
create function lease_tokens(asks json, burst double precision, pace double precision, given double precision)
returns table (key text, granted double precision, wait double precision, at double precision)
language plpgsql security definer set search_path = ${schema}, pg_temp as $$
declare
  ask record;
  bucket rates;
  freed double precision;
  goal double precision;
begin
  for ask in select * from json_to_recordset(asks) as a(key text, want double precision, used double precision,
    returned double precision, debt double precision, own double precision, paced double precision, "isSpent" boolean,
    "leasedAt" double precision) order by a.key collate "C"
  loop
    insert into rates values (ask.key, burst, -1, 0, 0, -1, 0) on conflict do nothing;
    select * into bucket from rates r where r.key = ask.key for update;
    at := coalesce(given, clock_ms());
    if bucket.at < 0 then
      bucket.at := at;
      bucket.turned := at;
    end if;
    -- Leased tokens have no room until now, also those of which the ask tells: some were there to be used until just now.
    bucket.tokens := least(
      burst - bucket.held - bucket.before,
      bucket.tokens + greatest(0, at - bucket.at) * pace - coalesce(ask.paced, 0)
    );
    if at >= bucket.turned + ${leaseMs} then
      bucket.before := case when at < bucket.turned + ${2 * leaseMs} then bucket.held else 0 end;
      bucket.held := 0;
      bucket.turned := at;
    end if;
    freed := case when at < ask."leasedAt" + ${reportMs} then ask.used + ask.returned else 0 end;
    bucket.held := greatest(0, bucket.held - greatest(0, freed - bucket.before));
    bucket.before := greatest(0, bucket.before - freed);
    bucket.tokens := least(
      burst - bucket.held - bucket.before,
      bucket.tokens + case when freed > 0 then ask.returned else 0 end - least(0, ask.debt)
    ) - greatest(0, ask.debt) - coalesce(ask.own, 0);
    bucket.at := greatest(bucket.at, at);
    granted := greatest(0, least(ask.want, floor(bucket.tokens + 1e-9)));
    bucket.tokens := bucket.tokens - granted;
    bucket.held := bucket.held + case when ask."isSpent" then 0 else granted end;
    goal := least(ask.want, greatest(1, floor(pace * 100)));
    wait := case when granted = ask.want and (granted > 0 or bucket.tokens >= 0) then 0
      else greatest(1, (goal - bucket.tokens) / pace) end;
    update rates r set tokens = bucket.tokens, at = bucket.at, held = bucket.held, before = bucket.before,
      turned = bucket.turned, "fullAt" = bucket.at + (burst - bucket.tokens) / pace + ${2 * leaseMs}
      where r.key = ask.key;
    key := ask.key;
    return next;
  end loop;
end $$`

/** Removes buckets that are full: they are as good as new ones. */
export const fullBuckets = `delete from rates where "fullAt" < clock_ms()`

interface TimedCall extends LeaseCall {
  /** Time of the database, milliseconds; its own clock when absent. */
  readonly at?: number
}

/**
 * Longest time of a call, milliseconds. What is leased after one second is not used; but an answer that is waited for says
 * that requests without tokens were reported to the bucket, since they would be charged twice otherwise.
 */
const limitMs = 5_000

/** @throws what kept the buckets from being asked */
export async function leaseTokens(connections: DatabaseConnections, call: TimedCall): Promise<readonly LeaseAnswer[]> {
  const { limit, asks, at = null } = call
  const values = [JSON.stringify(asks), limit.burst, limit.requestsPerMinute / 60_000, at]
  const text = 'select * from lease_tokens($1, $2, $3, $4)'
  const { rows } = await connections.queryInTime({ text, values, limitMs })
  return rows
}
