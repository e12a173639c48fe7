import { StartupError } from '../base/refusals.ts'
import { crossCheck } from '../config/check.ts'
import { formatProblem } from '../config/given.ts'
import { type ConfigChange, changeOf, type LiveSettings } from '../config/live.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { createSerialQueue } from '../runtime/serial-queue.ts'
import type { ThreadPool } from '../threads/pool.ts'
import { type AuthorityHolder, auditAuthority } from './authority.ts'
import { type Base, reloadFiles } from './base.ts'
import type { Listening } from './listening.ts'
import type { Rules } from './rules.ts'
import type { Upstreams } from './upstreams.ts'

export interface GatewayReloadParts extends Pick<Base, 'clock' | 'log' | 'store' | 'report'> {
  readonly settings: LiveSettings
  /** The configuration of the start. */
  readonly start: Config
  /** Reads the configuration again; absent: it does not change. */
  readonly readConfig?: () => LoadedConfig
  readonly rules: Pick<Rules, 'policies'>
  readonly upstreams: Pick<Upstreams, 'keptCredentials' | 'prices'>
  readonly authority: AuthorityHolder | undefined
  readonly pool: Pick<ThreadPool, 'reload' | 'prepareSettings' | 'change'> | undefined
  readonly listening: Pick<Listening, 'reload'>
}

export type Reload = ReturnType<typeof createReload>

export function createReload(parts: GatewayReloadParts) {
  let last = { succeeded: true, at: parts.clock.now() }
  let needRestart: readonly string[] = []
  // Each compares with what the one before has put in force.
  const inTurn = createSerialQueue()
  async function reload(): Promise<boolean> {
    const change = await reloadSettings(parts).catch(error => {
      parts.report('settings and credentials were not reloaded, the old ones stay', error)
      return undefined
    })
    needRestart = change?.needRestart ?? needRestart
    const othersRead = await reloadOthers(parts).catch(error => {
      parts.report('the reload failed', error)
      return false
    })
    last = { succeeded: change !== undefined && othersRead, at: parts.clock.now() }
    return last.succeeded
  }
  return {
    /** How the last one ended, and when: the start is the first. */
    get last() {
      return last
    },
    get needRestart() {
      return needRestart
    },
    /** Reads everything again that a running gateway reads. False: something has a mistake, and stayed as it was. */
    run: () => inTurn(reload),
  }
}

/**
 * Puts the settings in force in all threads, or in none.
 *
 * @throws StartupError with a line for each mistake
 */
async function reloadSettings(parts: GatewayReloadParts): Promise<ConfigChange> {
  const { settings, pool, log } = parts
  const change = changeOf(parts.start, settings.config, readAgain(parts))
  const { config, changed, needRestart } = change
  // Those of now and those of the start may not go together.
  const problems = crossCheck(config, new Map(), 'settings')
  if (problems.length > 0) throw new StartupError(problems.map(formatProblem).join('\n'))
  const [commit] = await Promise.all([settings.prepare(config), pool?.prepareSettings(config)])
  commit()
  await pool?.change('useSettings', config)
  if (changed.length > 0) log.info({ count: changed.length }, `settings reloaded: ${changed.join(', ')}`)
  if (needRestart.length > 0) log.warn({}, `changed settings that need a restart: ${needRestart.join(', ')}`)
  return change
}

function readAgain({ readConfig, start }: GatewayReloadParts): Config {
  const loaded = readConfig?.() ?? { config: start }
  if ('problems' in loaded) throw new StartupError(loaded.problems.map(formatProblem).join('\n'))
  return loaded.config
}

async function reloadOthers(parts: GatewayReloadParts): Promise<boolean> {
  const { rules, upstreams, pool, report, listening } = parts
  const policiesRead = await rules.policies.reload()
  const secretsRead = await reloadFiles(upstreams.keptCredentials, 'secrets', report)
  const pricesRead = await reloadFiles(upstreams.prices, 'prices of models', report)
  const authorityRead = await reloadAuthority(parts)
  const threadsRead = (await pool?.reload()) ?? true
  return (await listening.reload()) && secretsRead && pricesRead && policiesRead && authorityRead && threadsRead
}

async function reloadAuthority({ authority, store, clock, report }: GatewayReloadParts): Promise<boolean> {
  if (authority === undefined) return true
  const isRead = await authority.reload()
  await auditAuthority({ store, clock }, authority.current).catch(error => report('the audit trail failed', error))
  return isRead
}
