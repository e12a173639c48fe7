/** The authority of the forward proxy, as one gateway has it. */
import { resolve } from 'node:path'
import { refuse, StartupError } from '../base/refusals.ts'
import { type Authority, describeAuthority, readAuthority } from '../intercept/authority.ts'
import { permittedBy } from '../intercept/name-constraints.ts'
import { isValid, openStoredAuthority, prepareRotation } from '../intercept/stored-authority.ts'
import type { ManagedAuthority } from '../management/parts.ts'
import type { AuditEntry } from '../storage/store.ts'
import type { ThreadPool } from '../threads/pool.ts'
import type { Base } from './base.ts'

export type AuthorityParts = Pick<Base, 'config' | 'baseDirectory' | 'dataDirectory' | 'clock' | 'log'>

export interface AuthorityHolder {
  /** The one in use. */
  readonly current: Authority
  /** Reads the authority again. False: it cannot be used, and the old one stays in use. */
  reload(): Promise<boolean>
}

const setting = 'ForwardProxy:Ca:CertificateFile'

/**
 * The configured authority, or the one in the data directory, which is made if there is none; undefined without a forward
 * proxy.
 *
 * @throws StartupError when it cannot be used
 */
export async function openAuthority(parts: AuthorityParts): Promise<AuthorityHolder | undefined> {
  const { config, clock, log } = parts
  if (!config.ForwardProxy.Enabled) return undefined
  let current = await read(parts)
  const isConfigured = config.ForwardProxy.Ca.CertificateFile !== undefined
  if (isConfigured && !isValid(current.certificate, clock.now())) {
    throw new StartupError(`${setting}: the certificate expired on ${current.certificate.validTo}. Renew it.`)
  }
  return {
    get current() {
      return current
    },
    async reload() {
      try {
        const renewed = await read(parts)
        if (renewed.bundle === current.bundle) return true
        current = renewed
        log.info({}, `certificate authority reloaded: ${describeAuthority(renewed)}`)
        return true
      } catch (error) {
        log.error({ error }, 'the certificate authority could not be reloaded; the old one stays in use')
        return false
      }
    },
  }
}

function read({ config, baseDirectory, dataDirectory, clock }: AuthorityParts): Promise<Authority> {
  const { CertificateFile, KeyFile } = config.ForwardProxy.Ca
  if (CertificateFile === undefined || KeyFile === undefined) return openStoredAuthority(dataDirectory, clock.now())
  return readAuthority({
    certificateFile: resolve(baseDirectory, CertificateFile),
    keyFile: resolve(baseDirectory, KeyFile),
  })
}

/** Warnings at start about an authority that expires soon. */
export function authorityWarnings(authority: Authority | undefined, now: number): readonly string[] {
  const end = authority?.certificate.validToDate
  if (end === undefined || end.getTime() > now + soonMs) return []
  const verb = end.getTime() > now ? 'expires' : 'expired'
  return [`ForwardProxy: the certificate authority ${verb} on ${end.toISOString()}; see agent-gateway ca rotate`]
}

const soonMs = 30 * 86_400_000

type AuditParts = Pick<Base, 'store' | 'clock'>

/** Writes an audit entry when the authority differs from the last one in the trail. */
export async function auditAuthority({ store, clock }: AuditParts, authority: Authority): Promise<void> {
  const { items } = await store.audit.list({ page: 1, pageSize: 1 }, { action: useAction })
  if (items[0]?.subject === authority.certificate.fingerprint256) return
  await store.audit.append(entryOf(authority, { at: clock.now(), actor: 'gateway', requestId: null }))
}

const useAction = 'ca.use'

function entryOf(
  { certificate, constraints }: Authority,
  by: Pick<AuditEntry, 'at' | 'actor' | 'requestId'>,
): AuditEntry {
  const { fingerprint256: subject, validToDate } = certificate
  const permitted = constraints === undefined ? {} : { permitted: permittedBy(constraints) }
  return { ...by, action: useAction, subject, details: { validUntil: validToDate.toISOString(), ...permitted } }
}

interface ManagedParts extends AuthorityParts, AuditParts {
  readonly authority: AuthorityHolder | undefined
  /** The other threads, which reload the authority. */
  readonly followers: { readonly pool: Pick<ThreadPool, 'reload'> | undefined }
}

/** The authority for the API; undefined without a forward proxy. */
export function manageAuthority(parts: ManagedParts): ManagedAuthority | undefined {
  const { authority, config, dataDirectory, clock, store, followers } = parts
  if (authority === undefined) return undefined
  return {
    current: () => authority.current,
    async rotate(rotation, by) {
      if (config.ForwardProxy.Ca.CertificateFile !== undefined) return configuredElsewhere
      const prepared = await prepareRotation(dataDirectory, clock.now(), { ...rotation, old: authority.current })
      // A rotation that cannot be recorded is not done.
      await store.audit.append(entryOf(prepared.authority, { at: clock.now(), ...by }))
      await prepared.store()
      await authority.reload()
      await followers.pool?.reload()
      return authority.current
    },
  }
}

const configuredElsewhere = refuse(
  'wrong_state',
  `${setting} names the authority. Replace its files, the new certificate before the old one, and send the gateway SIGHUP.`,
)
