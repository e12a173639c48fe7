import { change } from '../api.ts'
import { drafts, setDraft } from '../drafts.ts'
import { CommentField, denyPresets } from './comment.tsx'
import { Confirm, type DialogProps } from './confirm.tsx'

/** Discards the request for good; the agent gets the comment. */
export function DenyDialog(props: DialogProps) {
  const { id, digest } = props.view
  const comment = drafts.value.get(id) ?? ''
  const act = async () => {
    const body = comment === '' ? {} : { comment }
    const failure = await change('POST', `/hitl/${id}/deny`, { body, digest })
    if (failure === undefined) setDraft(id, '')
    return failure
  }
  return (
    <Confirm {...props} title="Deny" verb="Deny" said="Denied." act={act}>
      <CommentField value={comment} onInput={text => setDraft(id, text)} presets={denyPresets} isFirst />
    </Confirm>
  )
}
