/** Budgets: where their parts come together. */

import { type Budgets, createBudgets } from '../budgets/budgets.ts'
import { createBudgetNotices } from '../budgets/notices.ts'
import { createBudgetRule } from '../budgets/rules.ts'
import { Leases } from '../fleet/leases.ts'
import type { TokenLeases } from '../limits/lease.ts'
import type { SharedTable } from '../limits/shared-table.ts'
import { SpendBook } from '../limits/spend.ts'
import { rowOf, type SpendAnswer, type SpendAsk } from '../limits/spend-lease.ts'
import { createProviders } from '../llm/providers.ts'
import { createMeterOf } from '../pipeline/answers/usage-meter.ts'
import type { OutboundParts } from '../pipeline/parts.ts'
import { budgetLeaseWaits } from '../telemetry/layout.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Base } from './base.ts'
import type { Identity } from './identity.ts'
import type { Prices } from './prices.ts'
import type { SharedRates } from './rates.ts'

/** How a thread gets leases of budgets. */
export interface SpendLeases extends Pick<TokenLeases, 'need' | 'asked'> {
  /** Reports what is left to report, and gives leases back. */
  finish(): Promise<void>
  /** Removes windows that are over for long. */
  sweep(now: number): Promise<void>
  /** Keys of which the store was not told all; undefined in threads that ask another. */
  unreported?(): readonly string[]
}

export type SpendFor = (book: SpendBook) => SpendLeases

export type SpendLimits = ReturnType<typeof openSpend>

export function openSpend(table: SharedTable, spendFor: SpendFor) {
  const book: SpendBook = new SpendBook({ table, onNeed: key => leases.need(key) })
  const leases = spendFor(book)
  return { table, book, leases }
}

export interface SpendLeaseParts extends Pick<Base, 'config' | 'clock' | 'store' | 'report'> {
  readonly rates: SharedRates | undefined
}

/** Least time between two looks for windows that are over, milliseconds; and how long these are kept. */
const pruneEveryMs = 3_600_000
const keptMs = 86_400_000

/** How the main thread leases from the store, for all threads. */
export function createSpendLeases({ config, clock, store, rates, report }: SpendLeaseParts): SpendFor {
  const { Storage } = config
  const rules = new Map(config.Budgets.map(settings => [settings.Name, createBudgetRule(settings)]))
  const termsOf = (key: string) => {
    const rule = rules.get(rowOf(key).budget)
    return { limit: rule?.limit, exact: rule?.exact === true }
  }
  const notice = createBudgetNotices({
    ...{ clock, store, report, currency: config.Metering.Currency },
    ruleOf: name => rules.get(name),
  })
  let prunedAt = Number.NEGATIVE_INFINITY
  return book => {
    const leases = new Leases<SpendAsk, SpendAnswer>({
      clock,
      lateMs: Storage[Storage.Provider].TimeoutSeconds * 1_000,
      lease: asks => store.spend.lease(asks, Math.max(1, rates?.gateways() ?? 1)),
      book: {
        ask: (key, now) => book.ask(key, termsOf(key), now),
        accept(ask, answer, { now }) {
          book.accept(ask, answer, now)
          notice(ask.key, answer)
        },
        miss: ask => book.miss(ask),
        goAlone: key => book.goAlone(key),
        // Only gateways that share a database share rates.
        isDue: (key, now) => book.isDue(key, now, rates === undefined),
      },
    })
    return {
      need: key => leases.need(key),
      asked: key => leases.asked(key),
      finish() {
        book.close()
        return leases.finish()
      },
      async sweep(now) {
        if (now - prunedAt < pruneEveryMs) return
        prunedAt = now
        await store.spend.prune(now - keptMs)
      },
      unreported: () => [...leases.keys].filter(key => book.isUnreported(key)),
    }
  }
}

/** Budgets for people, with what this gateway knows beyond the store. */
export const openBudgets = (
  sources: Pick<Base, 'config' | 'clock' | 'store'> & { readonly identity: Pick<Identity, 'registry'> },
  spend: SpendLimits | undefined,
): Budgets =>
  createBudgets({
    ...sources,
    stateOf: key => spend?.book.stateOf(key),
    unreported: () => spend?.leases.unreported?.() ?? [],
    agents: () => sources.identity.registry.values(),
  })

export interface MeteringSources extends Pick<Base, 'config' | 'clock'> {
  readonly prices: Prices | undefined
  readonly spend: SpendLimits | undefined
  readonly metrics: Pick<Metrics, 'add'>
}

/** How calls of models are metered, and the budgets that they are held against. */
export function createMetering({
  config,
  clock,
  prices,
  spend,
  metrics,
}: MeteringSources): Pick<OutboundParts, 'meterOf' | 'bill' | 'budgets'> {
  const providerAt = createProviders(config.Metering.Hosts)
  return {
    meterOf: prices && createMeterOf(providerAt, { clock, costOf: prices.costOf }),
    bill: prices && { config, clock, providerAt, prices },
    budgets: spend && {
      ...{ config, clock, providerAt, prices: prices ?? unpriced },
      // Nobody is asked for a call that another budget refuses.
      rules: config.Budgets.map(createBudgetRule).sort((one, other) => Number(one.asks) - Number(other.asks)),
      book: spend.book,
      asked(key) {
        metrics.add(budgetLeaseWaits, 1)
        return spend.leases.asked(key)
      },
    },
  }
}

/** There are budgets of calls alone, which need no prices. */
const unpriced = { costOf: () => undefined, chargeOf: () => undefined }
