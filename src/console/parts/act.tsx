import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Failure } from '../api.ts'
import { toast } from '../notices.ts'
import { Dialog } from './dialog.tsx'
import { Problem } from './states.tsx'

export interface ActProps {
  readonly title: string
  readonly verb: string
  readonly tone?: 'primary' | 'danger'
  /** Absent: it may be done. */
  readonly isBlocked?: boolean
  /** What is done; undefined when it was done. */
  readonly act: () => Promise<Failure | undefined>
  /** Said when it was done; absent: `act` says it. */
  readonly said?: string
  readonly children: ComponentChildren
  readonly onClose: () => void
  readonly onDone: () => void
}

/** The step between a choice and what it does. What fails stays in it. */
export function Act({ title, verb, tone = 'danger', isBlocked, act, said, children, onClose, onDone }: ActProps) {
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  const isReady = !isBusy && isBlocked !== true
  const confirm = async () => {
    if (!isReady) return
    setBusy(true)
    const failed = await act()
    setBusy(false)
    setFailure(failed)
    if (failed !== undefined) return
    if (said !== undefined) toast(said, 'good')
    onDone()
  }
  return (
    <Dialog title={title} onClose={onClose} onConfirm={() => void confirm()}>
      {children}
      <Problem text={failure?.detail} />
      <p class="actions">
        <button type="button" onClick={onClose}>
          {failure === undefined ? 'Cancel' : 'Close'}
        </button>
        <button type="button" class={tone} disabled={!isReady} onClick={() => void confirm()}>
          {isBusy ? 'Sending…' : verb}
        </button>
      </p>
    </Dialog>
  )
}
