import { useId, useState } from 'preact/hooks'
import { change, type Failure, query } from '../api.ts'
import { Act } from '../parts/act.tsx'
import { hrefOf } from '../router.ts'
import { plural } from '../text.ts'
import type { Policy } from '../types.ts'
import type { DiffLine } from './diff.ts'
import { DiffView } from './diff-view.tsx'

interface PublishProps {
  /** Undefined: a new one. */
  readonly policy: Policy | undefined
  readonly text: string
  readonly lines: readonly DiffLine[]
  readonly failed: number
  readonly onClose: () => void
  readonly onPublished: () => void
}

/** Puts the text in force, with a comment for the trail. */
export function PublishDialog({ policy, text, lines, failed, onClose, onPublished }: PublishProps) {
  const [comment, setComment] = useState('')
  const id = useId()
  const act = async (): Promise<Failure | undefined> => {
    const body: { readonly name?: string } = JSON.parse(text)
    if (policy === undefined) {
      const failure = await change('POST', `/policies${query({ comment })}`, { body })
      if (failure === undefined) location.hash = hrefOf('policies', body.name ?? '').slice(1)
      return failure
    }
    const path = `/policies/${encodeURIComponent(policy.name)}`
    const failure = await change('PUT', path + query({ comment }), { body, digest: policy.version })
    return failure?.code === 'not_as_seen' ? changedMeanwhile : failure
  }
  return (
    <Act
      title="Publish this policy?"
      verb="Publish"
      tone="primary"
      act={act}
      said="The policy is in force."
      onClose={onClose}
      onDone={onPublished}
    >
      {failed > 0 && <p class="notice bad">{plural(failed, 'test')} fail.</p>}
      <DiffView lines={lines} />
      <div class="comment">
        <label htmlFor={id}>Why, for the audit trail</label>
        <textarea
          id={id}
          rows={2}
          maxLength={500}
          value={comment}
          data-first
          onInput={event => setComment(event.currentTarget.value)}
        />
      </div>
      <p class="hint">It decides from the next request on, in every gateway.</p>
    </Act>
  )
}

const changedMeanwhile: Failure = {
  status: 412,
  code: 'not_as_seen',
  detail:
    'Somebody published another version meanwhile. Nothing was done, and your text is kept: open the policy again to see what differs.',
  problem: {},
}
