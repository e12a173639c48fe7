import { isRefusal } from '../base/refusals.ts'
import { parseTarget } from '../base/target.ts'
import type { Budgets } from '../budgets/budgets.ts'
import type { PickedCredential } from '../credentials/credentials.ts'
import { placeText } from '../credentials/placement.ts'
import { createEventLog, type EventLog, type HitlEvent } from '../hitl/events.ts'
import { createGrants } from '../hitl/grants.ts'
import type { HitlOptions, Person } from '../hitl/model.ts'
import { createPush, type Push } from '../hitl/push/push.ts'
import { createQueue, type Queue } from '../hitl/queue.ts'
import { eventData, mayDecide, parseDecision } from '../hitl/view.ts'
import type { RecentActivity } from '../limits/recent-activity.ts'
import { recordingMode } from '../pipeline/ends/recording.ts'
import { inTime } from '../runtime/clock.ts'
import { type EventNote, keptEvents } from '../storage/events.ts'
import { reviewTime, verdicts } from '../telemetry/layout.ts'
import { type Base, consoleUrlOf } from './base.ts'
import type { DataPlane } from './data-plane.ts'
import type { Identity } from './identity.ts'
import { sealingKeys } from './keys.ts'
import { openReceivers } from './receivers.ts'
import type { Rules } from './rules.ts'
import { openSlack } from './slack.ts'
import type { Telemetry } from './telemetry.ts'
import type { Upstreams } from './upstreams.ts'

export interface HitlParts
  extends Pick<Base, 'config' | 'onSettings' | 'clock' | 'store' | 'member' | 'repeats' | 'report'> {
  readonly identity: Pick<Identity, 'registry' | 'tokens' | 'problemOf'>
  readonly upstreams: Pick<Upstreams, 'ownRequests' | 'credentials' | 'ca'>
  readonly dataPlane: Pick<DataPlane, 'send' | 'bounds' | 'recorder'>
  readonly recent: RecentActivity
  readonly telemetry: Pick<Telemetry, 'metrics'>
  readonly events: EventLog
  readonly budgets: Pick<Budgets, 'raiseOfApproval'>
  readonly rules: Pick<Rules, 'policies'>
  /** Takes one call of a person by the rate of the management API: 0, or the milliseconds to wait. */
  readonly takeCall: (personId: string) => number | Promise<number>
}

/** Everything about requests that wait for a person. */
export type Hitl = ReturnType<typeof createHitl>

const nothing = () => {}
/** Time to record abandoned replays. */
const recordMs = 1_000

/** The events of the store. Open it once agents are followed, which they name. */
export async function openEvents({
  store,
  identity,
  report,
}: Pick<HitlParts, 'store' | 'report'> & { readonly identity: Pick<Identity, 'registry'> }): Promise<EventLog> {
  const events = createEventLog({ capacity: keptEvents, describe: describing(identity), report })
  await store.feed.events.follow(events)
  return events
}

const describing =
  ({ registry }: Pick<Identity, 'registry'>) =>
  (event: EventNote) =>
    eventData(event, id => registry.get(id)?.name)

/** @throws StartupError when a webhook's destination is refused */
export function createHitl(parts: HitlParts) {
  const { config, clock, store, identity, events, report } = parts
  const stopping = new AbortController()
  noteActivity(events, parts.recent)
  const queue = openQueue(parts, stopping.signal)
  const slack = openSlack({ ...parts, queue, reviewerOf: id => reviewerOf(identity, id) })
  const push = openPush(parts)
  const receivers = openReceivers({
    ...parts,
    others: [...(slack?.channels ?? []), ...(push?.receivers ?? [])],
    ...{ describe: describing(identity), ownerOf: id => identity.registry.get(id)?.ownerId },
  })
  let sweeping: Promise<void> | undefined
  async function sweep(): Promise<void> {
    await parts.repeats.sweep()
    await queue.sweep()
    await receivers.sweep()
    await slack?.sweep()
  }
  return {
    queue,
    /** Undefined without a Slack app. */
    slack,
    /** Undefined without Web Push. */
    push,
    grants: createGrants({ store, clock, settings: config.HumanInTheLoop }),
    events,
    /** Aborts when the gateway stops: ends event streams and waits. */
    stopping: stopping.signal,
    /** Expiry, lapsed leases, retention, webhooks, entries that were counted. Call every second or so. */
    sweep() {
      // One after the other, so that they do not pile up when the database is slow.
      sweeping ??= sweep().finally(() => {
        sweeping = undefined
      })
      return sweeping
    },
    /** Answers calls that wait for a verdict. Call before the connections are drained. */
    stop: () => stopping.abort(),
    /**
     * Waits for requests that are being sent upstream, `limitMs` at most, and for the webhooks a moment; then closes them.
     * Returns how many were given up: they are on record as unknown.
     */
    async finish(limitMs: number): Promise<number> {
      const count = await endReplays(queue, limitMs, report)
      await slack?.close()
      await receivers.finish()
      return count
    },
  }
}

function openQueue(parts: HitlParts, stopping: AbortSignal): Queue {
  const { config, clock, store, member, identity, dataPlane, events, report } = parts
  const { metrics } = parts.telemetry
  return createQueue({
    ...{ store, clock, member, settings: config.HumanInTheLoop, events, report, stopping },
    sealingKeys: sealingKeys(config, identity.tokens.secret),
    tokenHeader: config.Security.AgentAuth.CustomHeaderName,
    noteVerdict: (agentId, verdict) => identity.registry.recordTrust(agentId, verdict, null),
    onDecided(item, verdict) {
      metrics.count(verdicts, verdict)
      if (verdict !== 'withdrawn') metrics.observe(reviewTime, Math.max(0, clock.now() - item.createdAt) / 1e3)
    },
    send: dataPlane.send,
    raiseOf: raisesOf(parts),
    noteRefusal: parts.repeats.note,
    agentProblem: identity.problemOf,
    reviewerOf: id => reviewerOf(identity, id),
    agentName: id => identity.registry.get(id)?.name,
    addedFields: item => credentialNames(parts, item),
    ...recordDenials(parts),
    onFull: (bound, agentId, requestId) => dataPlane.bounds.reached(bound, agentId, requestId ?? undefined),
  })
}

function openPush({ config, clock, store, identity, upstreams, report }: HitlParts): Push | undefined {
  const { Enabled, Hosts: hosts } = config.HumanInTheLoop.Push
  if (!Enabled) return undefined
  const { post } = upstreams.ownRequests
  return createPush({
    ...{ store: store.subscriptions, clock, hosts, post, report },
    sealingKeys: sealingKeys(config, identity.tokens.secret),
    contact: consoleUrlOf(config) ?? '',
    reviewerOf: id => reviewerOf(identity, id),
  })
}

/** A denial teaches what not to allow. */
function recordDenials({ config, clock, dataPlane: { recorder }, identity }: HitlParts): Pick<HitlOptions, 'onDenied'> {
  if (recorder === undefined) return {}
  return {
    onDenied(item, { method, url, rawHeaders, body }) {
      const agent = identity.registry.get(item.agentId)
      const target = parseTarget(url)
      if (agent === undefined || typeof target === 'string') return
      const mode = recordingMode(agent, { config, clock })
      if (mode === 'off') return
      const known = body.byteLength <= config.Recording.MaxBodyBytes ? body : undefined
      const { policyName: policy, rule } = item
      const outcome = { effect: 'Hitl', policy, rule, status: 0, verdict: 'denied', signal: null } as const
      const call = {
        agent,
        target,
        method,
        rawHeaders,
        hasBody: body.byteLength > 0,
        body: known,
        outcome,
        isSampled: mode === 'samples',
      }
      recorder.note(call, undefined, clock.now())
    },
  }
}

/** Each attempt to send a request may raise once. */
const raisesOf =
  ({ budgets }: HitlParts): HitlOptions['raiseOf'] =>
  ({ id, attempt }, { budget, amount, comment, reviewer, requestId }) => {
    const terms = { id: `${id} ${attempt + 1}`, hitlId: id, ...budget, amount, comment }
    return budgets.raiseOfApproval(budget.name, terms, { agent: reviewer, requestId })
  }

/** Waits for requests that are being sent, and gives up the others. Returns how many. */
async function endReplays(queue: Queue, limitMs: number, report: HitlParts['report']): Promise<number> {
  await inTime(queue.idle(), limitMs, nothing)
  const givenUp = queue.giveUp().catch(error => {
    report('replays that were given up could not be recorded', error)
    return 0
  })
  return inTime(givenUp, recordMs, () => 0)
}

function reviewerOf({ problemOf, registry }: HitlParts['identity'], id: string): Person | undefined {
  const agent = problemOf(id) === undefined ? registry.get(id) : undefined
  return agent !== undefined && mayDecide(agent) ? agent : undefined
}

/** Names of the credential fields that the gateway adds for the upstream of a held request. */
function credentialNames({ identity, upstreams }: HitlParts, item: HeldItem): readonly string[] {
  const agent = identity.registry.get(item.agentId)
  const target = parseTarget(item.url)
  if (agent === undefined || typeof target === 'string') return []
  const rawHeaders = Object.entries(item.headers).flat()
  const { credential } = parseDecision(item)
  // What it is had for does not show, but a credential for the token of the agent is one of them.
  const subjectToken = { agentId: item.agentId, digest: '', token: undefined, endsAt: 0 }
  const picked = upstreams.credentials.pick({ target, agent, rawHeaders, tokenNames: [], subjectToken }, credential)
  return picked === undefined || isRefusal(picked) ? [] : picked.map(describe)
}

function describe({ place, name, source }: PickedCredential): string {
  return name === undefined ? placeText(place) : `${placeText(place)} (${source})`
}

type HeldItem = Parameters<HitlOptions['addedFields']>[0]

/** Verdicts of reviewers and changes of tools, in any gateway, count as activity of the agent. */
function noteActivity(events: EventLog, { activity }: RecentActivity): void {
  events.subscribe(event => {
    if (event.type === 'denied') activity.humanDenied(agentOf(event), event.at)
    if (event.type === 'toolChanged') activity.toolChanged(agentOf(event), event.at)
  })
}

const agentOf = ({ data }: HitlEvent): string => String(data['agentId'])
