import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Failure } from '../api.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Method } from '../parts/marks.tsx'
import { Cut, Text } from '../parts/text.tsx'
import { whatOf } from '../queue/what.tsx'
import type { HitlRequest } from '../types.ts'

export interface DialogProps {
  readonly view: HitlRequest
  readonly onClose: () => void
  /** It was done. */
  readonly onDone: () => void
  /** It was not done, and never will be: the request was decided, withdrawn or expired first. */
  readonly onEnded: (text: string) => void
  /** Whether an answer is awaited, and what went wrong with the last one. */
  readonly onBusy: (isBusy: boolean, problem?: string) => void
}

interface ConfirmProps extends DialogProps {
  readonly title: string
  readonly verb: string
  readonly tone: 'primary' | 'danger'
  /** What is done; undefined when it was done. */
  readonly act: () => Promise<Failure | undefined>
  readonly children: ComponentChildren
}

/** The step between a decision and what it does. It ends with the request; other failures stay in it. */
export function Confirm({ view, title, verb, tone, act, children, onClose, onDone, onEnded, onBusy }: ConfirmProps) {
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  const confirm = async () => {
    if (isBusy) return
    setBusy(true)
    onBusy(true)
    const failed = await act()
    setBusy(false)
    onBusy(false, failed && textOf(failed))
    if (failed === undefined) onDone()
    else if (ends.has(failed.code)) onEnded(textOf(failed))
    else setFailure(failed)
  }
  return (
    <Dialog title={title} onClose={onClose} onConfirm={() => void confirm()}>
      <Line view={view} />
      {children}
      {failure !== undefined && (
        <p class="notice bad" role="alert">
          {textOf(failure)}
        </p>
      )}
      <p class="actions">
        <button type="button" onClick={onClose}>
          {failure === undefined ? 'Cancel' : 'Close'}
        </button>
        <button type="button" class={tone} disabled={isBusy} onClick={() => void confirm()}>
          {isBusy ? 'Sending…' : verb}
        </button>
      </p>
    </Dialog>
  )
}

function Line({ view }: { readonly view: HitlRequest }) {
  const what = whatOf(view)
  return (
    <p class="line">
      {what !== null && (
        <strong>
          <Text value={what} />
        </strong>
      )}
      <span>
        <Method name={view.method} /> <Cut pieces={[{ text: view.url }]} kind="told" first={400} />
      </span>
    </p>
  )
}

/** After these, no verdict counts any more. */
const ends: ReadonlySet<string> = new Set(['already_decided', 'withdrawn', 'not_found'])

const texts: Readonly<Record<string, string>> = {
  not_as_seen: 'The request is not the one on your screen. Nothing was done.',
  digest_mismatch: 'What is stored is not what was shown, or cannot be opened. Nothing was sent.',
  withdrawn: 'The agent withdrew the request first. Nothing was sent.',
  not_found: 'The request expired or was deleted first. Nothing was sent.',
  store_unavailable: 'The gateway cannot record a verdict now, so nothing was done. Your comment is kept.',
  offline:
    'The gateway does not answer. Your comment is kept; look at the request again before you repeat the verdict.',
}

function textOf({ code, detail, problem }: Failure): string {
  if (code === 'already_decided') return `It was decided first: ${problem.hitlStatus?.toLowerCase()}.`
  return Object.hasOwn(texts, code) ? (texts[code] ?? detail) : detail
}
