/** Dialogs on a request, beside its approval: to deny it, to send it again, to quarantine its agent. */
import { change } from '../api.ts'
import { drafts, setDraft } from '../drafts.ts'
import { approveAgain } from './approve-dialog.tsx'
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

/** Sends again what may have arrived already. */
export function ResendDialog(props: DialogProps) {
  const { view } = props
  const comment = drafts.value.get(view.id) ?? ''
  const act = async () => {
    const failure = await approveAgain(view, comment)
    if (failure === undefined) setDraft(view.id, '')
    return failure
  }
  return (
    <Confirm {...props} title="Send it again?" verb="Send again" act={act}>
      <p class="notice warn">
        It was sent before, and nobody knows whether it arrived. If it did, what it asks for happens twice: a payment is
        made twice, a message goes out twice. Look at the upstream first.
      </p>
      <CommentField value={comment} onInput={text => setDraft(view.id, text)} isFirst />
    </Confirm>
  )
}

/** Bars the agent until an admin lifts it. */
export function QuarantineDialog(props: DialogProps) {
  const { agentId, agentName } = props.view
  const act = () => change('POST', `/agents/${agentId}/quarantine`)
  return (
    <Confirm
      {...props}
      title={`Quarantine ${agentName ?? 'the agent'}?`}
      verb="Quarantine"
      said="The agent is quarantined."
      act={act}
    >
      <p data-first tabIndex={-1}>
        Nothing of it passes until an admin lifts the quarantine, and what it has under way ends. Its requests stay in
        the queue; while it is quarantined they cannot be approved.
      </p>
    </Confirm>
  )
}
