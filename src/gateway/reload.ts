import type { ThreadPool } from '../threads/pool.ts'
import { type AuthorityHolder, auditAuthority } from './authority.ts'
import { type Base, reloadFiles } from './base.ts'
import type { Listening } from './listening.ts'
import type { Rules } from './rules.ts'
import type { Upstreams } from './upstreams.ts'

export interface GatewayReloadParts extends Pick<Base, 'clock' | 'store' | 'report'> {
  readonly rules: Pick<Rules, 'policies'>
  readonly upstreams: Pick<Upstreams, 'credentials' | 'prices'>
  readonly authority: AuthorityHolder | undefined
  readonly pool: Pick<ThreadPool, 'reload'> | undefined
  readonly listening: Pick<Listening, 'reload'>
}

export interface Reload {
  /** Reads everything again that a running gateway reads. False: something has a mistake, and stayed as it was. */
  run(): Promise<boolean>
  /** How the last one ended, and when: the start is the first. */
  readonly last: { readonly succeeded: boolean; readonly at: number }
}

export function createReload(parts: GatewayReloadParts): Reload {
  let last = { succeeded: true, at: parts.clock.now() }
  return {
    get last() {
      return last
    },
    async run() {
      const succeeded = await reloadAll(parts).catch(error => {
        parts.report('the reload failed', error)
        return false
      })
      last = { succeeded, at: parts.clock.now() }
      return succeeded
    },
  }
}

async function reloadAll(parts: GatewayReloadParts): Promise<boolean> {
  const { rules, upstreams, pool, report, listening } = parts
  const policiesRead = await rules.policies.reload()
  const credentialsRead = await reloadFiles(upstreams.credentials, 'credentials of upstreams', report)
  const pricesRead = await reloadFiles(upstreams.prices, 'prices of models', report)
  const authorityRead = await reloadAuthority(parts)
  const threadsRead = (await pool?.reload()) ?? true
  return (await listening.reload()) && credentialsRead && pricesRead && policiesRead && authorityRead && threadsRead
}

async function reloadAuthority({ authority, store, clock, report }: GatewayReloadParts): Promise<boolean> {
  if (authority === undefined) return true
  const isRead = await authority.reload()
  await auditAuthority({ store, clock }, authority.current).catch(error => report('the audit trail failed', error))
  return isRead
}
