import type { TrailVerification } from '../audit/verification.ts'
import type { AuthorityHolder } from './authority.ts'
import type { Base } from './base.ts'
import type { DataPlane } from './data-plane.ts'
import type { Fleet } from './fleet.ts'
import type { Hitl } from './hitl.ts'
import type { Overview } from './overview.ts'
import type { Recording } from './recording.ts'
import type { Rules } from './rules.ts'
import type { SharedLimits } from './shared.ts'
import type { Telemetry } from './telemetry.ts'
import type { Upstreams } from './upstreams.ts'

export interface SweepParts extends Pick<Base, 'clock' | 'report'> {
  readonly dataPlane: Pick<DataPlane, 'sweep'>
  readonly hitl: Pick<Hitl, 'sweep'>
  readonly telemetry: Pick<Telemetry, 'sample'>
  readonly limits: Pick<SharedLimits, 'breaker' | 'spend'>
  readonly overview: Pick<Overview, 'sample'>
  readonly fleet: Pick<Fleet, 'sweep'>
  readonly rules: Pick<Rules, 'policies'>
  readonly recording: Pick<Recording, 'sweep'>
  readonly authority: AuthorityHolder | undefined
  /** Keeps agents from the other gateways. */
  readonly guardPeers: () => void
  readonly upstreams: Pick<Upstreams, 'keptCredentials'>
  readonly verification: Pick<TrailVerification, 'step'>
}

/** Time between two sweeps, milliseconds. */
const sweepMs = 1_000
/** Random addition, milliseconds: gateways that started together do not all sweep at the same time. */
const spreadMs = 250

export function startSweeps(parts: SweepParts): NodeJS.Timeout {
  const { clock, dataPlane, hitl, telemetry, limits, overview, verification, report, fleet, rules, guardPeers } = parts
  const everyMs = sweepMs + Math.random() * spreadMs
  return setInterval(() => {
    dataPlane.sweep()
    telemetry.sample()
    overview.sample().catch(error => report('waiting requests could not be counted', error))
    verification.step().catch(error => report('the audit trail could not be verified', error))
    guardPeers()
    parts.upstreams.keptCredentials?.sweep().catch(error => report('secrets could not be looked at', error))
    fleet.sweep(rules.policies.book.list(), parts.authority?.current.certificate.fingerprint256)
    limits.breaker.sweep(clock.steady())
    limits.spend?.leases.sweep(clock.now()).catch(error => report('windows of budgets could not be removed', error))
    parts.recording.sweep().catch(error => report('recorded shapes could not be stored', error))
    hitl.sweep().catch(error => report('expired reviews could not be removed', error))
  }, everyMs)
}
