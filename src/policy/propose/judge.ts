import { hostKey, type MarkedHost } from './hosts.ts'
import { areWithin, covers, likenessOf, type RecordedRequest, type Template, totalOf } from './template.ts'

/** A template with the effect of its rule. */
export interface Judged {
  readonly template: Template
  readonly effect: 'Allow' | 'Hitl'
  /** Why it waits for a person; empty for Allow. */
  readonly cause: string
}

const reading = ['GET', 'HEAD', 'OPTIONS']
/** Requests, and days on which they came, that a change needs before it is allowed. */
const fewestCount = 3
const fewestDays = 2
/** Approvals after which what people always approve may be allowed. */
const approvalsToPromote = 10

export interface JudgeOptions {
  /** Allows what was approved often and never denied. */
  readonly promotes: boolean
  /** Hosts that a person looks at first, by `hostKey`. */
  readonly hosts: ReadonlyMap<string, MarkedHost>
}

/**
 * The effect of each template. One that would also allow a request that a person decided on, or that was denied, waits for a
 * person too.
 *
 * @param recorded all requests, those that teach nothing as well
 */
export function judge(
  templates: readonly Template[],
  recorded: readonly RecordedRequest[],
  options: JudgeOptions,
): readonly Judged[] {
  const decided = recorded.filter(({ verdict, effect }) => verdict !== null || effect === 'Deny')
  const byLikeness = Map.groupBy(decided, ({ shape, agentId }) => likenessOf(shape, agentId))
  const judged = templates.map((template): Judged => {
    const alike = byLikeness.get(likenessOf(template, template.agentId)) ?? []
    const cause = causeToHold(
      template,
      alike.filter(one => covers(template, one)),
      options,
    )
    return { template, effect: cause === '' ? 'Allow' : 'Hitl', cause }
  })
  return withoutCovered(judged)
}

function causeToHold(
  { agentId, method, origin, evidence }: Template,
  decided: readonly RecordedRequest[],
  { promotes, hosts }: JudgeOptions,
): string {
  if (decided.some(({ verdict, effect }) => verdict === 'denied' || effect === 'Deny')) return 'also denied'
  const approved = totalOf(decided)
  if (approved > 0 && (!promotes || approved < approvalsToPromote)) return 'approved by people'
  if (method === 'DELETE' && approved === 0) return 'deletes'
  const host = hosts.get(hostKey(agentId, origin))
  if (host !== undefined) return `host: ${host.causes.join(', ')}`
  if (reading.includes(method)) return ''
  return evidence.count < fewestCount || evidence.days < fewestDays ? 'seen too seldom' : ''
}

/** Leaves out templates whose requests another one allows. */
function withoutCovered(judged: readonly Judged[]): readonly Judged[] {
  const pathAndLikeness = ({ template }: Judged) => `${template.pattern} ${likenessOf(template, template.agentId)}`
  const allowing = Map.groupBy(
    judged.filter(({ effect }) => effect === 'Allow'),
    pathAndLikeness,
  )
  return judged.filter(one => {
    const others = allowing.get(pathAndLikeness(one)) ?? []
    return !others.some(other => other !== one && isWithin(one.template, other.template))
  })
}

/** A field that the outer one limits is missing in the inner one, or may have other texts, unless that limits it too. */
const isWithin = (inner: Template, outer: Template): boolean =>
  areWithin(inner.names, outer.names) &&
  outer.values.every(([field, texts]) => {
    const mine = inner.values.find(([name]) => name === field)?.[1]
    return mine?.every(text => texts.includes(text)) === true
  })
