import type { Origin } from '../base/origin.ts'
import type { Refusal } from '../base/refusals.ts'
import type { Egress } from './egress.ts'
import { isPublicName, refuseFailure } from './failure.ts'
import type { Resolution, ResolveFailure, Resolver } from './resolve.ts'

/** The addresses of an origin, all of them allowed; or why there are none. */
export type RouteResult = Resolution | Refusal

/**
 * The one way out of the gateway, for agents, approved requests, webhooks and the identity provider alike: an origin is
 * refused by its name, looked up, and refused by its addresses, in this order. Connections then go only to the addresses
 * that were checked (dial.ts).
 */
export interface UpstreamRoute {
  /** Refuses by name alone. For callers that decide before they call `find`: a name that is refused decides nothing. */
  refuseName(origin: Origin): Refusal | undefined
  /**
   * At once if the addresses are known.
   *
   * @param owner agent whose request it is; the gateway itself when absent
   */
  find(origin: Origin, owner?: string): RouteResult | Promise<RouteResult>
  /** For an origin that the operator has configured as such: it may be anywhere. */
  findTrusted(origin: Origin): Promise<RouteResult>
}

export interface RouteParts {
  readonly egress: Pick<Egress, 'checkHost' | 'checkAddresses'>
  readonly resolver: Resolver
}

export function createRoute({ egress, resolver }: RouteParts): UpstreamRoute {
  const checked = (origin: Origin, answer: Resolution | ResolveFailure): RouteResult =>
    'failed' in answer ? refuseName(origin, answer) : (egress.checkAddresses(origin, answer.addresses) ?? answer)

  return {
    refuseName: origin => egress.checkHost(origin),
    find(origin, owner) {
      const refusal = egress.checkHost(origin)
      if (refusal !== undefined) return refusal
      const answer = resolver.resolve(origin.host, owner)
      return answer instanceof Promise ? answer.then(late => checked(origin, late)) : checked(origin, answer)
    },
    async findTrusted(origin) {
      const answer = await resolver.resolve(origin.host)
      return 'failed' in answer ? refuseName(origin, answer) : answer
    },
  }
}

/** A name that is not found says nothing of the upstream that it names at other times: it opens no circuit. */
const refuseName = ({ host }: Origin, { failed }: ResolveFailure): Refusal => refuseFailure(failed, isPublicName(host))
