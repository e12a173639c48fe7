import { When } from '../parts/frame.tsx'
import { useRead } from '../parts/read.ts'
import { Text } from '../parts/text.tsx'
import type { AuditVerification } from '../types.ts'

/** Whether the chain holds, as far as the gateway has verified it. */
export function Verification() {
  const { data } = useRead<AuditVerification>('/audit/verification')
  if (data === undefined) return null
  const { status, verifiedTo, verifiedAt, lastHash, firstBroken, why, reached } = data
  if (status === 'broken') {
    return (
      <p class="notice bad" role="alert">
        The trail is broken at entry {firstBroken}: <Text value={why ?? ''} />.
      </p>
    )
  }
  if (status === 'running' || verifiedAt === null)
    return <p class="notice">The trail is being verified; entry {reached} was reached.</p>
  return (
    <p class="hint verified">
      <span class="good-text">✓ Intact</span> up to entry {verifiedTo}, verified <When at={verifiedAt} />. Hash{' '}
      <code title={lastHash}>{lastHash.slice(0, 16)}…</code>
    </p>
  )
}
