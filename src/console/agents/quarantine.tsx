import { When } from '../parts/frame.tsx'
import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import type { AgentActivity } from '../types.ts'
import { causeTexts } from './trust.tsx'

type Change = AgentActivity['trust'][number]

/** Why an agent is quarantined, and what comes next; nothing for others. */
export function Quarantine({ activity: { agent, trust } }: { readonly activity: AgentActivity }) {
  const at = trust.findIndex(({ action }) => action === 'agent.quarantine')
  const entry = trust[at]
  if (agent.status !== 'Quarantined' || entry === undefined) return null
  const before = trust.slice(at)
  const lifted = before.findIndex(({ action }) => action === 'agent.liftQuarantine')
  const since = before.slice(0, lifted < 0 ? undefined : lifted).filter(isLoss)
  const first = since.at(-1)
  const isOwn = entry.actor === 'gateway'
  return (
    <section class="notice warn" aria-label="Quarantine">
      <p>
        {isOwn ? 'The gateway' : <a href={hrefOf('agents', entry.actor)}>A person</a>} quarantined it{' '}
        <When at={entry.at} />
        {isOwn && first !== undefined && (
          <>
            : its trust fell from {first.trustBefore?.toFixed(2)} to {entry.trustAfter?.toFixed(2)}, after{' '}
            {causeTexts(sumOf(since)).join(', ')}
          </>
        )}
        . Nothing of it passes.
      </p>
      <p>
        Its last requests and the comments of reviewers are below. Ask its owner,{' '}
        <Text value={agent.ownerId} limit={120} />; then an admin lifts the quarantine, or revokes it for good.
      </p>
    </section>
  )
}

const isLoss = ({ trustBefore, trustAfter }: Change): boolean =>
  trustBefore !== null && trustAfter !== null && trustAfter < trustBefore

function sumOf(changes: readonly Change[]): Change['causes'] {
  const sum: Record<string, number> = {}
  for (const { causes } of changes) {
    for (const [cause, count] of Object.entries(causes)) sum[cause] = (sum[cause] ?? 0) + count
  }
  return sum
}
