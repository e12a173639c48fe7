import { useState } from 'preact/hooks'
import { change, query } from '../api.ts'
import { Act } from '../parts/act.tsx'
import { Frame, Refresh, Shown, When } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { Method } from '../parts/marks.tsx'
import { useRead } from '../parts/read.ts'
import { Empty } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { TimeLeft } from '../parts/time-left.tsx'
import { hrefOf, search, setSearch } from '../router.ts'
import { mayDecide } from '../session.ts'
import { plural } from '../text.ts'
import type { Grant } from '../types.ts'

const mostGrants = 200

/** What agents may repeat without asking, and how to end it. */
export const GrantsPage: Page = () => {
  const reading = useRead<readonly Grant[]>(
    `/hitl/grants${query({ limit: mostGrants, after: search.value.get('after') ?? undefined })}`,
  )
  const [ending, setEnding] = useState<Grant>()
  return (
    <Frame title="Grants" aside={<Refresh reading={reading} />}>
      <p class="hint">
        A grant lets requests like the approved one pass without a review, until it ends or is used up.
      </p>
      <Shown reading={reading}>
        {grants =>
          grants.length === 0 ? (
            <Empty title="No grant is in force">
              <p>A reviewer gives one with "Approve with a grant".</p>
            </Empty>
          ) : (
            <>
              <ul class="records" aria-label="Grants in force">
                {grants.map(grant => (
                  <GrantRecord key={grant.id} grant={grant} onEnd={() => setEnding(grant)} />
                ))}
              </ul>
              <MoreGrants grants={grants} />
            </>
          )
        }
      </Shown>
      {ending !== undefined && (
        <EndDialog
          grant={ending}
          onClose={() => setEnding(undefined)}
          onDone={() => {
            setEnding(undefined)
            reading.again()
          }}
        />
      )}
    </Frame>
  )
}

/** The list is oldest first. */
function MoreGrants({ grants }: { readonly grants: readonly Grant[] }) {
  const last = grants.length < mostGrants ? undefined : grants.at(-1)
  const isLater = search.value.get('after') !== null
  if (last === undefined && !isLater) return null
  return (
    <nav class="pages" aria-label="Pages of the list">
      <span class="actions">
        <button type="button" disabled={!isLater} onClick={() => setSearch({ after: undefined })}>
          Oldest
        </button>
        <button
          type="button"
          disabled={last === undefined}
          onClick={() => last && setSearch({ after: `${last.createdAt},${last.id}` })}
        >
          Newer
        </button>
      </span>
    </nav>
  )
}

function GrantRecord({ grant, onEnd }: { readonly grant: Grant; readonly onEnd: () => void }) {
  const { agentId, agentName, rule, policyName, maxUses, uses, hitlId, createdAt, expiresAt } = grant
  return (
    <li class="record">
      <span class="record-what">
        <Scope grant={grant} />
      </span>
      {mayDecide.value && (
        <button type="button" class="danger" onClick={onEnd}>
          End…
        </button>
      )}
      <span class="record-more">
        <Text value={agentName ?? agentId} limit={80} href={hrefOf('agents', agentId)} />
        <strong>{plural(Math.max(0, maxUses - uses), 'use')} left</strong>
        <span>{uses} used</span>
        <TimeLeft from={createdAt} until={expiresAt} />
        <span>
          rule <Text value={rule ?? 'default'} limit={80} /> of <Text value={policyName} limit={80} />
        </span>
        <span>
          given <When at={createdAt} />
        </span>
        <a href={hrefOf('requests', hitlId)}>Approved request</a>
      </span>
    </li>
  )
}

function Scope({ grant: { method, origin, path } }: { readonly grant: Grant }) {
  return (
    <>
      <Method name={method} /> <Text value={origin} limit={200} />
      <Text value={path} limit={300} />
    </>
  )
}

interface EndProps {
  readonly grant: Grant
  readonly onClose: () => void
  readonly onDone: () => void
}

function EndDialog({ grant, onClose, onDone }: EndProps) {
  const act = async () => {
    const failure = await change('DELETE', `/hitl/grants/${encodeURIComponent(grant.id)}`)
    // It ran out, was used up, or another reviewer was first.
    return failure?.status === 404 ? undefined : failure
  }
  return (
    <Act title="End this grant?" verb="End it" act={act} said="The grant has ended." onClose={onClose} onDone={onDone}>
      <p class="line">
        <Scope grant={grant} />
      </p>
      <p data-first tabIndex={-1}>
        From now on each such request waits for a review again. Requests that already passed are not called back.
      </p>
    </Act>
  )
}
