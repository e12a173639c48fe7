import { Dialog } from './parts/dialog.tsx'
import { shortcuts } from './prefs.ts'

const keys = [
  ['J, K', 'Next, previous request'],
  ['Enter', 'Open the request'],
  ['A', 'Approve: opens the confirmation, sends nothing'],
  ['D', 'Deny: opens the confirmation'],
  ['G', 'Approve with a grant'],
  ['X', 'Select the request'],
  ['Shift X', 'Select from the one before to this one'],
  ['Ctrl Enter', 'Confirm the open dialog'],
  ['Ctrl K', 'Go to a page, request, agent or policy'],
  ['Ctrl Space', 'Complete a name, in the editor of policies'],
  ['/', 'Filter'],
  ['Esc', 'Close, or clear the selection'],
  ['?', 'This help'],
]

export function Help({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl class="keys">
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={shortcuts.value}
          onChange={event => {
            shortcuts.value = event.currentTarget.checked
          }}
        />
        Use shortcuts of a single key
      </label>
      <p class="actions">
        <button type="button" onClick={onClose} data-first>
          Close
        </button>
      </p>
    </Dialog>
  )
}
