import { detail } from '../agents/agent.ts'
import { escapeDeceptive } from '../base/deceptive.ts'
import { refuse } from '../base/refusals.ts'
import { jsonReply } from '../http/respond.ts'
import type { Incident, RankedName } from '../limits/incidents.ts'
import type { AuditRecord } from '../storage/store.ts'
import type { TimeRange } from '../telemetry/history.ts'
import { type Handlers, textsOf } from './call.ts'
import type { ManagementParts } from './parts.ts'

/** Entries of the audit trail about trust. */
const trustActions = ['agent.trust', 'agent.quarantine', 'agent.liftQuarantine']
/** Changes of trust, and verdicts, that are shown. */
const latest = 50
const latestVerdicts = 10

const spans: Readonly<Record<TimeRange, number>> = { hour: 3_600_000, day: 86_400_000 }

/** What the gateway and its agents do, for people. */
export function overviewHandlers(parts: ManagementParts): Handlers['guarded'] {
  const { overview, registry, clock, incidents, activityOf, hitl, store } = parts
  const named = ({ name, count }: RankedName) => ({ name: escapeDeceptive(name), count })

  return {
    async getOverview(call) {
      // openapi.json lists the ranges.
      const shown = await overview(textsOf(call)['range'] as TimeRange)
      const { plots, currency, now, denials } = shown
      return jsonReply(200, {
        ...plots,
        until: new Date(plots.until).toISOString(),
        currency,
        now,
        denials: {
          rules: denials.rules.map(named),
          hosts: denials.hosts.map(named),
          agents: denials.agents.map(({ name: id, count }) => ({
            id,
            name: escapeDeceptive(registry.get(id)?.name ?? ''),
            count,
          })),
        },
      })
    },
    async getVerdictNumbers(call) {
      // openapi.json lists the ranges.
      const { since, reviewers, ...numbers } = await hitl.queue.numbers(spans[textsOf(call)['range'] as TimeRange])
      const withName = reviewers.map(({ id, ...one }) => ({
        id,
        name: escapeDeceptive(registry.get(id)?.name ?? ''),
        ...one,
      }))
      return jsonReply(200, { since: new Date(since).toISOString(), ...numbers, reviewers: withName })
    },
    async getAgentActivity({ named: id }) {
      const agent = registry.get(id)
      if (agent === undefined) return refuse('not_found')
      const page = { page: 1, pageSize: latest }
      const [verdicts, ...trails] = await Promise.all([
        hitl.queue.history({ page: 1, pageSize: latestVerdicts }, { agentId: agent.id }),
        ...trustActions.map(action => store.audit.list(page, { subject: agent.id, action })),
      ])
      const trust = trails.flatMap(({ items }) => items).sort((left, right) => right.seq - left.seq)
      const { requestsLastMinute, deniedLast10m, hitlLast24h, humanDeniedLast24h } = activityOf(agent.id, clock.now())
      return jsonReply(200, {
        agent: detail(agent, clock.now()),
        counts: { requestsLastMinute, deniedLast10m, hitlLast24h, humanDeniedLast24h },
        trust: trust.slice(0, latest).map(trustEntry),
        verdicts: verdicts.items,
        incidents: incidents.of(agent.id).map(incidentEntry),
      })
    },
  }
}

/** `trustBefore`, `trustAfter` and `causes` are missing where a person changed the status. */
function trustEntry({ at, action, actor, details }: AuditRecord) {
  const { trustBefore = null, trustAfter = null, causes = {} } = details
  return { at: new Date(at).toISOString(), action, actor, trustBefore, trustAfter, causes }
}

function incidentEntry({ at, agentId: _, denied: __, ...incident }: Incident) {
  const { method, origin, path } = incident
  return {
    at: new Date(at).toISOString(),
    ...incident,
    method: escapeDeceptive(method),
    origin: escapeDeceptive(origin),
    path: escapeDeceptive(path),
  }
}
