/**
 * Budgets that all gateways share. A gateway leases from them: one statement for all keys, so that no gateway has locks
 * while it waits for the network.
 */
import { maxSum, rowOf, type SpendAnswer, type SpendAsk } from '../../limits/spend-lease.ts'
import type { SpendTable } from '../spend.ts'
import type { DatabaseConnections } from './connection.ts'

/** Sums are JavaScript numbers, so none may be greater. */

/**
 * For each ask, what `grantOf` in `limits/spend-lease.ts` says. Rows are locked in one order, here and where leases are
 * forfeited.
 */
const createLease = (schema: string): string => `
create function lease_spend(asks json, asking text, gateways integer)
returns table (key text, leased bigint, spent bigint, others bigint, raised bigint)
language plpgsql security definer set search_path = ${schema}, pg_temp as $$
declare
  ask record;
  total spend;
  told spend_leases;
  remaining numeric;
  waiting numeric;
  step numeric;
begin
  for ask in select * from json_to_recordset(asks) as a(key text, budget text, holder text, "from" bigint, until bigint,
    begins boolean, spent numeric, estimated numeric, calls numeric, keep numeric, reserved numeric, needed numeric,
    least numeric, ahead numeric, "limit" numeric, exact boolean)
    order by a.budget collate "C", a."from", a.holder collate "C"
  loop
    insert into spend (budget, holder, "from", until, spent, estimated, calls, raised)
      values (ask.budget, ask.holder, ask."from", ask.until, 0, 0, 0, 0) on conflict do nothing;
    select * into total from spend s
      where s.budget = ask.budget and s."from" = ask."from" and s.holder = ask.holder for update;
    select * into told from spend_leases l
      where l.budget = ask.budget and l."from" = ask."from" and l.holder = ask.holder and l.gateway = asking;
    if ask.begins or told.gateway is null then
      told.spent := 0;
      told.estimated := 0;
      told.calls := 0;
    end if;
    select coalesce(sum(l.leased), 0) into others from spend_leases l
      where l.budget = ask.budget and l."from" = ask."from" and l.holder = ask.holder and l.gateway <> asking;
    total.spent := least(${maxSum}, total.spent + greatest(0, ask.spent - told.spent));
    total.estimated := least(${maxSum}, total.estimated + greatest(0, ask.estimated - told.estimated));
    total.calls := total.calls + greatest(0, ask.calls - told.calls);

    remaining := ask."limit" + total.raised - total.spent - others - ask.reserved;
    if remaining is null or remaining <= 0 or (ask.exact and ask.needed > 0 and remaining < ask.least) then
      leased := least(${maxSum}, ask.keep);
    else
      step := greatest(1, ask.least);
      waiting := least(ask.needed, case when ask.exact then remaining else ceil(remaining / step) * step end);
      leased := least(${maxSum}, greatest(ask.keep,
        ask.reserved + waiting + least(ask.ahead, floor(greatest(0, remaining - waiting) / (4 * gateways)))));
    end if;

    update spend s set spent = total.spent, estimated = total.estimated, calls = total.calls
      where s.budget = ask.budget and s."from" = ask."from" and s.holder = ask.holder;
    insert into spend_leases as l (budget, holder, "from", gateway, until, leased, spent, estimated, calls)
      values (ask.budget, ask.holder, ask."from", asking, ask.until, lease_spend.leased,
        least(${maxSum}, greatest(told.spent, ask.spent)), least(${maxSum}, greatest(told.estimated, ask.estimated)),
        greatest(told.calls, ask.calls))
      on conflict on constraint spend_leases_pkey do update set leased = excluded.leased, spent = excluded.spent,
        estimated = excluded.estimated, calls = excluded.calls;
    key := ask.key;
    spent := total.spent;
    raised := total.raised;
    return next;
  end loop;
end $$`

/**
 * What gateways that are gone have leased counts as spent, and as told by them: one that comes back is not charged twice.
 * Null: all of them are gone.
 */
const createForfeit = (schema: string): string => `
create function forfeit_spend(gone text[]) returns integer
language plpgsql security definer set search_path = ${schema}, pg_temp as $$
declare
  one spend_leases;
  lost bigint;
  count integer := 0;
begin
  for one in select * from spend_leases where leased > 0 and (gone is null or gateway = any(gone))
    order by budget collate "C", "from", holder collate "C"
  loop
    perform from spend where budget = one.budget and "from" = one."from" and holder = one.holder for update;
    select leased into lost from spend_leases
      where budget = one.budget and "from" = one."from" and holder = one.holder and gateway = one.gateway;
    continue when lost is null or lost <= 0;
    update spend_leases set spent = spent + lost, estimated = estimated + lost, leased = 0
      where budget = one.budget and "from" = one."from" and holder = one.holder and gateway = one.gateway;
    update spend set spent = spent + lost, estimated = estimated + lost
      where budget = one.budget and "from" = one."from" and holder = one.holder;
    count := count + 1;
  end loop;
  return count;
end $$`

export const createSpendFunctions = (schema: string): readonly string[] => [createLease(schema), createForfeit(schema)]

/** Longest time of a call, milliseconds: calls of agents do not wait as long, but an answer tells that it was done. */
const limitMs = 5_000

/** @param self id of this gateway among the members */
export function createSpendLeases(
  connections: DatabaseConnections,
  self: string,
): Pick<SpendTable, 'lease' | 'forfeit'> {
  return {
    async lease(asks: readonly SpendAsk[], gateways: number): Promise<readonly SpendAnswer[]> {
      const rows = asks.map(ask => ({ ...ask, ...rowOf(ask.key) }))
      const text = 'select * from lease_spend($1, $2, $3)'
      const values = [JSON.stringify(rows), self, gateways]
      return (await connections.queryInTime({ text, values, limitMs, of: 'agents' })).rows
    },
    async forfeit(gone) {
      const values = [gone === 'all' ? null : gone]
      const { rows } = await connections.queryInTime({ text: 'select forfeit_spend($1) as count', values, limitMs })
      return rows[0].count
    },
  }
}
