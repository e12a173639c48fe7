/** Where a call goes: the name is checked before the decision, and looked up after it. */
import { isRefusal, type Refusal } from '../../base/refusals.ts'
import { noteFailure } from '../../upstream/failure.ts'
import type { Resolution, RouteResult } from '../../upstream/resolve.ts'
import type { Checked } from '../exchange.ts'
import type { Call } from '../outbound/call.ts'
import type { OutboundParts } from '../parts.ts'

export function checkName({ target }: Call, { route }: OutboundParts): Refusal | undefined {
  return route.refuseName(target.origin)
}

/** Finds the addresses, unless a rule had to read them for the decision. */
export function lookUp(call: Call, parts: OutboundParts): Checked | Promise<Checked> {
  return call.resolution === undefined ? findAddresses(call, parts) : undefined
}

/** Finds and checks the addresses of the target. */
export function findAddresses(call: Call, parts: OutboundParts): Checked | Promise<Checked> {
  const found = parts.route.find(call.target.origin, call.agent.id)
  return found instanceof Promise ? found.then(late => keep(call, late, parts)) : keep(call, found, parts)
}

function keep(call: Call, found: RouteResult, parts: OutboundParts): Refusal | undefined {
  if (!isRefusal(found)) {
    call.resolution = found
    return undefined
  }
  const { agent, requestId, target } = call
  const about = { agentId: agent.id, requestId, host: target.origin.host }
  if (found.failure !== undefined) noteFailure(found.failure, about, parts)
  return found
}

/** When a rule reads the address, only the first address may be connected to: the decision was made on it. */
export function firstOnly(resolution: Resolution): Resolution {
  return { ...resolution, addresses: resolution.addresses.slice(0, 1) }
}
