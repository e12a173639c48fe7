import { isRefusal } from '../base/refusals.ts'
import { uuid } from '../config/formats.ts'
import { type CallerRate, takeAsked } from '../limits/caller-rate.ts'
import type { RecentActivity } from '../limits/recent-activity.ts'
import { paceOf } from '../limits/token-bucket.ts'
import { builtConsole, type ConsoleProvider } from '../management/console-files.ts'
import { createManagement } from '../management/management.ts'
import type { FailedLogin, ManagementParts } from '../management/parts.ts'
import type { Management } from '../management/router.ts'
import type { ClientIp } from '../pipeline/client-ip.ts'
import type { WorkTurns } from '../pipeline/work-turns.ts'
import { languageOf } from '../policies/language.ts'
import type { Bounds } from '../telemetry/bounds.ts'
import { logins, managementRequests } from '../telemetry/layout.ts'
import { classOf, type Metrics } from '../telemetry/metrics.ts'
import { createOncePerMinute } from '../telemetry/once-per-minute.ts'
import type { Grant } from '../tokens/grant.ts'
import { type Base, createFenced, selfUrlsOf } from './base.ts'
import type { Identity } from './identity.ts'
import { manageCredentials } from './managed-credentials.ts'
import type { Overview } from './overview.ts'
import type { Recording } from './recording.ts'
import type { Rules } from './rules.ts'
import type { Telemetry } from './telemetry.ts'
import type { Upstreams } from './upstreams.ts'

export interface ControlPlaneParts
  extends Pick<
      Base,
      'config' | 'clock' | 'log' | 'logStatus' | 'report' | 'store' | 'fence' | 'fenceWatch' | 'fleet' | 'repeats'
    >,
    Pick<ManagementParts, 'hitl' | 'budgets' | 'verification' | 'tracing' | 'authority' | 'threadsAnswer'> {
  readonly isStopping: () => boolean
  readonly identity: Pick<Identity, 'registry' | 'keys' | 'tokens'>
  readonly rules: Pick<Rules, 'policies' | 'explain' | 'work'>
  readonly upstreams: Pick<Upstreams, 'keptCredentials'>
  readonly recent: Pick<RecentActivity, 'hits' | 'shadows' | 'incidents' | 'activity'>
  readonly recording: Pick<Recording, 'isOn' | 'of' | 'samplesOf' | 'clear' | 'hits'>
  readonly overview: Overview
  /** Folder of the built console; that of this installation when absent. */
  readonly consoleFolder?: string | undefined
  readonly limits: { readonly managementRate: CallerRate }
  readonly telemetry: Pick<Telemetry, 'metrics'>
  readonly page: ManagementParts['metrics']['page']
  readonly clientIpOf: ClientIp
  readonly workTurns: WorkTurns
  readonly bounds: Bounds
}

/** The management API over the parts of a gateway. */
export function createControlPlane(parts: ControlPlaneParts): Management {
  const { config, clock, store, identity, rules, bounds, recent, recording } = parts
  const { verification, hitl, budgets, authority, tracing, threadsAnswer } = parts
  const { metrics } = parts.telemetry
  const fencedAs = createFenced(parts.fence)
  return createManagement({
    ...{ clock, store, recording, verification, hitl, budgets, authority, tracing, threadsAnswer },
    registry: identity.registry,
    keys: identity.keys,
    book: rules.policies.book,
    explain: (policy, description) => rules.explain(policy, description, parts.workTurns),
    policyWork: rules.work,
    language: languageOf(config),
    hits: recent.hits,
    ruleHits: recording.hits,
    shadows: recent.shadows,
    credentials: manageCredentials(parts),
    grant: countedGrant(identity.tokens.grant, metrics),
    console: identity.tokens.console,
    fourEyes: () => config.HumanInTheLoop.FourEyes,
    consoleFiles: {
      folder: parts.consoleFolder ?? builtConsole,
      provider: providerOf(config),
      hasPush: config.HumanInTheLoop.Push.Enabled,
      hasSlack: config.HumanInTheLoop.Slack.BotToken !== undefined,
    },
    verify: identity.tokens.verifyInternal,
    tokenKeys: identity.tokens.keys,
    noteRefusal: parts.repeats.note,
    takeCall: createTakeCall(parts),
    callLimit: () => paceOf(config.System.ManagementRateLimit),
    noteRateLimited: (callerId, requestId) => bounds.reached('management_rate', callerId, requestId),
    fencedAs,
    onFenced: listener => parts.fenceWatch?.subscribe(listener) ?? (() => {}),
    proxyRefusal: () => (parts.isStopping() ? 'draining' : fencedAs?.()),
    logIsWritten: () => parts.logStatus().problem === undefined,
    fleet: () => parts.fleet.view(),
    metrics: { page: parts.page, isPublic: config.Telemetry.Metrics.Public },
    countAnswer: status => metrics.count(managementRequests, classOf(status)),
    overview: range => parts.overview.read(range),
    incidents: recent.incidents,
    activityOf: (id, now) => recent.activity.of(id, now),
    allowedHosts: config.System.Server.AllowedHosts,
    ownUrls: selfUrlsOf(config),
    clientAddress: ({ socket, rawHeaders }) => parts.clientIpOf(socket, rawHeaders),
    noteFailedLogin: createLoginNotes(parts),
  })
}

/** Calls of people by the rate of the management API. */
export const createTakeCall =
  ({ limits: { managementRate }, clock }: Pick<ControlPlaneParts, 'limits' | 'clock'>): ManagementParts['takeCall'] =>
  callerId =>
    managementRate.take(callerId, clock.steady()) ?? takeAsked(managementRate, callerId, { now: () => clock.steady() })

/** Counts logins by what became of them. */
function countedGrant(grant: Grant, metrics: Metrics): Grant {
  return async (...asked) => {
    const token = await grant(...asked)
    const failed = isRefusal(token) && (token.refusal === 'too_many_logins' ? 'limited' : 'failed')
    metrics.count(logins, failed || 'succeeded')
    return token
  }
}

/** Where people sign in to the console, when the identity provider has a client for it. */
function providerOf({ Security }: Base['config']): ConsoleProvider | undefined {
  const { Provider, Jwt, Console } = Security.AgentAuth.ExternalIdentity
  if (Provider === undefined || Jwt.Authority === undefined || Console.ClientId === undefined) return undefined
  return { authority: Jwt.Authority, clientId: Console.ClientId, scope: Console.Scope }
}

/** Logs failed logins, once a minute for each agent id and client address. */
function createLoginNotes({
  clock,
  log,
  bounds,
}: Pick<ControlPlaneParts, 'clock' | 'log' | 'bounds'>): (failed: FailedLogin) => void {
  const isFirst = createOncePerMinute(clock)
  return ({ code, agentId = '', address, requestId }) => {
    // Any other text was made up by the caller.
    const id = uuid(agentId) === undefined ? agentId.toLowerCase() : undefined
    if (code === 'too_many_logins') bounds.reached('logins', id, requestId)
    else if (code === 'unauthenticated' && isFirst(`${id} ${address}`)) {
      log.warn({ agentId: id, clientIp: address, requestId }, 'login failed')
    }
  }
}
