import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import { firstAdminProblem } from '../agents/bootstrap.ts'
import { StartupError } from '../base/refusals.ts'
import type { Config } from '../config/schema.ts'
import { FleetClock } from '../fleet/clock.ts'
import type { Fence } from '../fleet/fence.ts'
import { subscriptionsOf } from '../hitl/receiver.ts'
import type { Log } from '../log/log.ts'
import { type Clock, inTime, systemClock } from '../runtime/clock.ts'
import { ownVersion } from '../runtime/version.ts'
import { type ThreadWatch, watchInThread } from '../runtime/watchdog.ts'
import type { Board } from '../storage/postgres/board.ts'
import { type PostgresSettings, parseAddress } from '../storage/postgres/settings.ts'
import { openSqliteStore } from '../storage/sqlite/open.ts'
import type { Store } from '../storage/store.ts'
import type { Base } from './base.ts'
import { createFleet, type Fleet, nameOf } from './fleet.ts'
import { describeKeys } from './keys.ts'
import type { SharedRates } from './rates.ts'

export interface StorageParts
  extends Pick<Base, 'config' | 'onSettings' | 'baseDirectory' | 'dataDirectory' | 'clock' | 'report'> {
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
  /** Lets another thread watch this one. */
  readonly watch?: ThreadWatch | undefined
}

export interface Storage extends Pick<Base, 'member'> {
  readonly store: Store
  readonly fence: Fence | undefined
  readonly fleet: Fleet
  /** Tokens of rates that hold for all gateways; absent when this is the only one. */
  readonly rates: SharedRates | undefined
  /** Board on which gateways on one database share counts. */
  readonly board: Board | undefined
  /** Resolves when the gateway may serve. Call it once agents and policies are followed. */
  untilOpen(): Promise<void>
}

/** Longest wait of a start until the gateway has every change, milliseconds. */
const openMs = 15_000

export const usesPostgres = ({ Storage: { Provider } }: Config): boolean => Provider === 'PostgreSQL'

export function createClock(config: Config, log: StorageParts['log']): Clock {
  if (!usesPostgres(config)) return systemClock
  const clock = new FleetClock()
  clock.onOff = ms => {
    const off = `${Math.abs(Math.round(ms / 1_000))} s ${ms > 0 ? 'ahead of' : 'behind'}`
    log.warn({}, `the clock of the database is ${off} the gateways, which follow it slowly: one second in ten`)
  }
  return clock
}

/** @throws StartupError with one line that says what to change */
export function openStorage(parts: StorageParts): Promise<Storage> {
  return usesPostgres(parts.config) ? openDatabase(parts) : openFile(parts)
}

async function openFile(parts: StorageParts): Promise<Storage> {
  const { config, dataDirectory, clock, log, report, watch } = parts
  const store = await openSqliteStore({
    ...{ directory: dataDirectory, clock, subscriptions: subscriptionsOf(config.HumanInTheLoop) },
    timeoutSeconds: config.Storage.Sqlite.TimeoutSeconds,
    watch,
    onFault: why => log.error({}, `the storage writes no more: ${why}`),
    onRestored: what => log.warn({}, `an older database was brought back: ${what}`),
    onStale: error => report('agents and policies could not be read again', error),
  })
  // No other gateway runs on it.
  if (config.Budgets.length > 0) await store.spend.forfeit('all')
  const fleet = createFleet(parts, undefined)
  const alone = { fence: undefined, board: undefined, fleet, rates: undefined }
  return { store, member: memberOf(config), ...alone, untilOpen: async () => {} }
}

const memberOf = (config: Config): Base['member'] => ({ id: randomUUID(), name: nameOf(config) })

async function openDatabase(parts: StorageParts): Promise<Storage> {
  const { config, baseDirectory, clock, log, report, watch } = parts
  // With SQLite this thread needs neither of them, nor the packages that they load.
  const { openPostgresStore } = await import('../storage/postgres/open.ts')
  const { lostHistory } = await import('../storage/postgres/loss.ts')
  if (watch !== undefined) watchInThread(watch, error => report('nothing watches the first thread any more', error))
  const member = memberOf(config)
  const store = await openPostgresStore({
    ...{ settings: postgresSettings(config, baseDirectory), clock, version: ownVersion() },
    keys: describeKeys(config),
    whyNotNew: firstAdminProblem(config.Security.Bootstrap),
    subscriptions: subscriptionsOf(config.HumanInTheLoop),
    ...member,
    fenceMs: config.Fleet.FenceAfterSeconds * 1_000,
    onStale: error => report('changes of agents and policies cannot be read', error),
    onLoss: {
      accept: config.Fleet.OnHistoryLoss === 'Accept',
      onLost: what => log.error({}, lostHistory(what)),
      onAccepted: () => log.warn({}, 'the loss of history was accepted: everything is loaded again'),
    },
  })
  // The database may have been copied from that of a gateway on SQLite.
  if (config.Budgets.length > 0) await store.spend.forfeit(['alone'])
  const late = () => Promise.reject(new StartupError('The database did not confirm in time that all changes are read.'))
  return {
    rates: { lease: call => store.lease(call), gateways: () => store.fleet().peers.length },
    ...{ store, member, fence: store.fence, board: store.board },
    fleet: createFleet(parts, store),
    untilOpen: () => inTime(store.untilOpen(), openMs, late),
  }
}

export function postgresSettings({ Storage }: Config, baseDirectory: string): PostgresSettings {
  const {
    ConnectionString = '',
    ListenConnectionString,
    Schema,
    Tls,
    CaFile,
    PoolSize,
    Migrate,
    TimeoutSeconds,
  } = Storage.PostgreSQL
  return {
    connectionString: ConnectionString,
    listenConnectionString: ListenConnectionString,
    schema: Schema,
    tls: Tls,
    caFile: CaFile === undefined ? undefined : resolve(baseDirectory, CaFile),
    poolSize: PoolSize,
    migrate: Migrate,
    timeoutSeconds: TimeoutSeconds,
  }
}

/** The database for people, without user and password; undefined for SQLite. */
export function describeStorage({ config, baseDirectory }: Pick<Base, 'config' | 'baseDirectory'>): string | undefined {
  if (!usesPostgres(config)) return undefined
  const settings = postgresSettings(config, baseDirectory)
  const { host, port, database } = parseAddress(settings)
  return `PostgreSQL: database ${database} at ${host}:${port}, schema ${settings.schema}`
}
