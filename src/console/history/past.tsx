import { When } from '../parts/frame.tsx'
import { makeHref } from '../parts/make-link.ts'
import { Method } from '../parts/marks.tsx'
import { Said, Text } from '../parts/text.tsx'
import { whatOf } from '../queue/what.tsx'
import { OutcomeMark } from '../request/outcome-mark.tsx'
import { hrefOf } from '../router.ts'
import { mayRead } from '../session.ts'
import type { PastRequest } from '../types.ts'

export function Past({ past }: { readonly past: PastRequest }) {
  const { id, method, url, status, agentId, agentName, rule, policyName, comment, decidedAt, timestamp } = past
  const words = whatOf(past)
  const what = (
    <>
      {words !== null && (
        <>
          <Text value={words} limit={160} /> ·{' '}
        </>
      )}
      <Method name={method} /> <Text value={url} limit={300} />
    </>
  )
  return (
    <li class="record">
      <span class="record-what">
        {/* Of an expired one, nothing but this line is kept. */}
        {status === 'Expired' ? what : <a href={hrefOf('requests', id)}>{what}</a>}
      </span>
      <When at={decidedAt ?? timestamp} />
      <span class="record-more">
        <OutcomeMark of={past} />
        <Text
          value={agentName ?? 'an agent that is not registered any more'}
          limit={80}
          href={hrefOf('agents', agentId)}
        />
        <span>
          <Text value={rule ?? 'default of the policy'} limit={80} />
        </span>
        {status !== 'Expired' && <a href={makeHref({ hitl: id })}>Make from this</a>}
        {mayRead.value && policyName != null && (
          <a href={`${hrefOf('policies', policyName)}?request=${encodeURIComponent(id)}`}>Explain</a>
        )}
      </span>
      {comment !== null && <Said value={comment} limit={600} />}
    </li>
  )
}
