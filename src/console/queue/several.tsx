import { useState } from 'preact/hooks'
import { plural } from '../text.ts'
import { chosenRows, clearChoice, groupOf } from './choice.ts'
import { opened } from './opened.ts'
import { SeveralDialog } from './several-dialog.tsx'
import type { Verdict } from './several-verdicts.ts'

export function Several() {
  const [asks, setAsks] = useState<Verdict>()
  const views = chosenRows.value.map(({ view }) => view)
  const isGroup = new Set(views.map(groupOf)).size === 1
  const unopened = views.filter(({ id }) => !opened.value.has(id)).length
  // The dialog outlasts the selection: requests that are decided are no longer selected, and it shows their outcomes.
  return (
    <>
      {views.length > 0 && (
        <section class="several" aria-label="Selected requests">
          <span>{views.length} selected</span>
          <button
            type="button"
            disabled={!isGroup}
            title={isGroup ? '' : approvesAGroup}
            onClick={() => setAsks('approve')}
          >
            Approve…
          </button>
          <button type="button" onClick={() => setAsks('deny')}>
            Deny…
          </button>
          <button type="button" class="plain" onClick={clearChoice}>
            Clear
          </button>
          {unopened > 0 && <p class="hint">You have not opened {plural(unopened, 'of them', 'of them')}.</p>}
          {!isGroup && <p class="hint">{approvesAGroup}</p>}
        </section>
      )}
      {asks !== undefined && <SeveralDialog verdict={asks} views={views} onClose={() => setAsks(undefined)} />}
    </>
  )
}

const approvesAGroup = 'Only requests of one agent, rule, method and path are approved together.'
