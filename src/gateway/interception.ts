import { randomBytes } from 'node:crypto'
import { type CurrentLeafs, openCurrentLeafs } from '../intercept/current-leafs.ts'
import { createInterception, type Interception } from '../intercept/interception.ts'
import { createOpenedHosts } from '../intercept/opened-hosts.ts'
import { OpenTunnels } from '../pipeline/open-tunnels.ts'
import type { Bounds } from '../telemetry/bounds.ts'
import { handshakes, mintedLeafs, openTunnels } from '../telemetry/layout.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createOncePerMinute } from '../telemetry/once-per-minute.ts'
import type { AuthorityHolder } from './authority.ts'
import type { Base } from './base.ts'
import type { SharedLimits } from './shared.ts'

/** Keys with which any thread resumes a session that another one began. */
export const createTicketKeys = (): Buffer => randomBytes(48)

export interface LeafsParts extends Pick<Base, 'clock'> {
  /** Undefined without a forward proxy. */
  readonly authority: AuthorityHolder | undefined
  /** Ticket keys of all threads. */
  readonly ticketKeys: Buffer
}

/** Certificates for tunnels; undefined without a forward proxy. */
export async function openLeafs({ authority, clock, ticketKeys }: LeafsParts): Promise<CurrentLeafs | undefined> {
  return authority && openCurrentLeafs({ clock, ticketKeys }, () => authority.current)
}

export interface ForwardProxyParts extends Pick<Base, 'config' | 'clock' | 'log'> {
  readonly bounds: Bounds
  readonly limits: Pick<SharedLimits, 'tunnels'>
  readonly leafs: CurrentLeafs | undefined
  readonly metrics: Metrics
}

/** The parts of the pipeline that serve the forward proxy. */
export type ForwardProxy = ReturnType<typeof openForwardProxy>

export function openForwardProxy(parts: ForwardProxyParts) {
  const { config, limits, leafs, metrics } = parts
  let counted = 0
  return {
    tunnels: new OpenTunnels(limits.tunnels, config.ForwardProxy.MaxTunnelsPerAgent, change =>
      metrics.change(openTunnels, 'intercepted', change),
    ),
    interception: openInterception(parts),
    /** Counts the work since the last call. */
    sweep() {
      const minted = leafs?.minted ?? 0
      metrics.add(mintedLeafs, minted - counted)
      counted = minted
    },
  }
}

function openInterception(parts: ForwardProxyParts): Interception | undefined {
  const { config, clock, log, leafs, metrics, bounds } = parts
  const { System, ForwardProxy } = config
  if (leafs === undefined) return undefined
  const isFirst = createOncePerMinute(clock)
  return createInterception({
    leafs,
    hosts: createOpenedHosts({ ...ForwardProxy, ...config.Proxy }),
    clock,
    limits: {
      maxStreams: System.RateLimit.MaxInFlight,
      firstMs: System.Server.HeadersTimeoutSeconds * 1_000,
      idleMs: ForwardProxy.KeepAliveSeconds * 1_000,
      stalledMs: System.Server.IdleTimeoutSeconds * 1_000,
    },
    onHandshake: isResumed => metrics.count(handshakes, isResumed ? 'resumed' : 'new'),
    onFailed({ id: tunnel, agentId, origin }, reason) {
      if (isFirst(origin, agentId)) log.warn({ agentId, tunnel, origin, reason }, 'interception failed')
    },
    onResets: ({ id, agentId }) => bounds.reached('stream_resets', agentId, id),
  })
}
