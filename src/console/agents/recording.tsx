import { useState } from 'preact/hooks'
import { change } from '../api.ts'
import { Act } from '../parts/act.tsx'
import { Choice } from '../parts/choice.tsx'
import { isAdmin } from '../session.ts'
import { timeText } from '../text.ts'
import type { Agent } from '../types.ts'
import type { AgentDialogProps } from './other-dialogs.tsx'

/** What is recorded of the agent for a time, other than `Recording:Mode` says. */
export function Recording({ agent, onChanged }: { readonly agent: Agent; readonly onChanged: () => void }) {
  const [isAsked, setAsked] = useState(false)
  const { recording } = agent
  return (
    <>
      {recording !== null && (
        <p class="hint">
          {says[recording.mode]} until {timeText(recording.until)}.
        </p>
      )}
      {isAdmin.value && (
        <p class="actions">
          <button type="button" onClick={() => setAsked(true)}>
            {recording === null ? 'Keep whole requests for a time…' : 'End it…'}
          </button>
        </p>
      )}
      {isAsked && (
        <RecordingDialog
          agent={agent}
          onClose={() => setAsked(false)}
          onDone={() => {
            setAsked(false)
            onChanged()
          }}
        />
      )}
    </>
  )
}

const says = {
  off: 'Nothing is recorded',
  shapes: 'Kinds of requests alone are recorded',
  samples: 'Whole requests are kept, sealed,',
}

const hourMs = 3_600_000
/** Hours. */
const spans = [
  ['1', 'an hour'],
  ['24', 'a day'],
  ['167', 'a week'],
] as const

function RecordingDialog({ agent: { id, recording }, onClose, onDone }: AgentDialogProps) {
  const [hours, setHours] = useState('24')
  const path = `/agents/${encodeURIComponent(id)}/recording`
  const ends = recording !== null
  const body = () =>
    ends ? { mode: null } : { mode: 'samples', until: new Date(Date.now() + Number(hours) * hourMs).toISOString() }
  return (
    <Act
      title={ends ? 'Record as the settings say?' : 'Keep whole requests of this agent?'}
      verb={ends ? 'End it' : 'Keep them'}
      tone="primary"
      act={() => change('PUT', path, { body: body() })}
      said={ends ? 'It has ended.' : 'Whole requests are kept from now on.'}
      onClose={onClose}
      onDone={onDone}
    >
      {ends ? (
        <p data-first tabIndex={-1}>
          What was kept stays until it is seven days old.
        </p>
      ) : (
        <>
          <p>
            At most five of one kind are kept for seven days, sealed: nobody reads them, and changes of policies are
            tried on them. A request in which a secret is found is not kept.
          </p>
          <Choice label="For how long" value={hours} options={spans} onChange={setHours} isFirst />
        </>
      )}
    </Act>
  )
}
