import { useState } from 'preact/hooks'
import { call, type Failure, query } from '../api.ts'
import { Copy } from '../parts/copy.tsx'
import { Failed } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import { isAdmin } from '../session.ts'
import { plural } from '../text.ts'
import type { Agent, ProposedPolicy } from '../types.ts'

type Mode = 'learn' | 'narrow'

/** A policy that is proposed: to read, to copy, and to open in the editor. Nothing is put in force here. */
export function Propose({ agent }: { readonly agent: Agent }) {
  const [found, setFound] = useState<{ readonly policy: ProposedPolicy; readonly mode: Mode }>()
  const [failure, setFailure] = useState<Failure>()
  const [isAsking, setIsAsking] = useState(false)
  const ask = async (mode: Mode) => {
    setIsAsking(true)
    const body = { agentIds: [agent.id], mode }
    const answer = await call<ProposedPolicy>('POST', '/policies/propose', { body })
    setIsAsking(false)
    setFailure(answer.ok ? undefined : answer.failure)
    setFound(answer.ok ? { policy: answer.data, mode } : undefined)
  }
  return (
    <div class="stack">
      <p class="actions">
        {agent.policyName !== null && (
          <button type="button" disabled={isAsking} onClick={() => void ask('narrow')}>
            Propose a narrower policy
          </button>
        )}
        <button type="button" disabled={isAsking} onClick={() => void ask('learn')}>
          Propose a new policy
        </button>
      </p>
      {failure !== undefined && <Failed failure={failure} />}
      {found !== undefined && <Proposal found={found.policy} page={pageOf(agent, found.mode)} />}
    </div>
  )
}

/** The editor with the proposal; undefined: whoever asks makes no policies. */
function pageOf({ id, policyName }: Agent, mode: Mode): string | undefined {
  const asked = query({ propose: mode, agent: id })
  if (mode === 'narrow' && policyName !== null) return hrefOf('policies', policyName, 'edit') + asked
  return isAdmin.value ? `#/new-policy${asked}` : undefined
}

interface ProposalProps {
  readonly found: ProposedPolicy
  readonly page: string | undefined
}

function Proposal({ found: { yaml, used, allowed, held, hosts, leftOut, tests }, page }: ProposalProps) {
  return (
    <section class="stack" aria-label="Proposed policy">
      <p>
        Made of {plural(used, 'request')}: it allows {allowed} of them and holds {held}. Read it, and try it in shadow
        first.
      </p>
      {hosts.length > 0 && (
        <div class="notice warn">
          <p>Look at these hosts before you allow them:</p>
          <ul>
            {hosts.map(({ origin, causes }) => (
              <li key={origin}>
                <Text value={origin} /> {causes.join(', ')}
              </li>
            ))}
          </ul>
        </div>
      )}
      {leftOut.length > 0 && (
        <p class="hint">Left out: {leftOut.map(({ cause, count }) => `${count} × ${cause}`).join('; ')}.</p>
      )}
      <pre>
        <Text value={yaml} />
      </pre>
      <p class="actions">
        {page !== undefined && (
          <a class="button primary" href={page}>
            Open in the editor
          </a>
        )}
        <Copy text={yaml} name="Copy the policy" />
        <Copy text={tests} name="Copy its tests" />
      </p>
    </section>
  )
}
