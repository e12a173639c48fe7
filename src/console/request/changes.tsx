import { useEffect, useState } from 'preact/hooks'
import { call, query } from '../api.ts'
import { now } from '../clock.ts'
import { Text } from '../parts/text.tsx'
import { groupOf } from '../queue/choice.ts'
import { hrefOf } from '../router.ts'
import { agoText } from '../text.ts'
import type { HitlRequest, PastRequestPage } from '../types.ts'
import { type Change, differences } from './differences.ts'

interface Earlier {
  readonly view: HitlRequest
  readonly changes: readonly Change[]
}

/** How the request differs from the last one of its group that was approved. */
export function Changes({ view }: { readonly view: HitlRequest }) {
  const [earlier, setEarlier] = useState<Earlier>()
  useEffect(() => {
    let isCurrent = true
    void findEarlier(view).then(found => isCurrent && setEarlier(found))
    return () => {
      isCurrent = false
    }
  }, [view.id])
  if (earlier === undefined) return null
  const { changes } = earlier
  return (
    <>
      <h3>
        Compared with the <a href={hrefOf('requests', earlier.view.id)}>last one like it that was approved</a>,{' '}
        {agoText(earlier.view.decidedAt ?? earlier.view.timestamp, now.value)}
      </h3>
      {changes.length === 0 ? (
        <p>Query, header fields and body are the same.</p>
      ) : (
        <table class="grid">
          <thead>
            <tr>
              <th scope="col">Where</th>
              <th scope="col">Approved</th>
              <th scope="col">Now</th>
            </tr>
          </thead>
          <tbody>
            {changes.map(({ where, before, after }) => (
              <tr key={where}>
                <th scope="row">
                  <Text value={where} limit={200} />
                </th>
                <td>{before === undefined ? <em>not there</em> : <Text value={before} limit={300} />}</td>
                <td>{after === undefined ? <em>not there</em> : <Text value={after} limit={300} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  )
}

async function findEarlier(view: HitlRequest): Promise<Earlier | undefined> {
  const { agentId, host, rule } = view
  const wanted = {
    status: 'approved',
    agentId,
    host: host?.replace(/:\d+$/, ''),
    rule: rule ?? undefined,
    pageSize: 50,
  }
  const list = await call<PastRequestPage>('GET', `/hitl${query(wanted)}`)
  const like = list.ok
    ? list.data.items.find(past => past.id !== view.id && groupOf(past) === groupOf(view))
    : undefined
  if (like === undefined) return undefined
  const answer = await call<{ readonly pending: HitlRequest }>('GET', `/hitl/${like.id}`)
  return answer.ok ? { view: answer.data.pending, changes: differences(answer.data.pending, view) } : undefined
}
