import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Failure } from '../api.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Method } from '../parts/marks.tsx'
import { Text } from '../parts/text.tsx'
import type { HitlRequest } from '../types.ts'
import type { VerdictProps } from './verdicts.tsx'

export interface DialogProps extends VerdictProps {
  readonly onClose: () => void
}

interface ConfirmProps extends DialogProps {
  readonly title: string
  readonly verb: string
  readonly tone: 'primary' | 'danger'
  /** What is done; undefined when it was done. */
  readonly act: () => Promise<Failure | undefined>
  readonly children: ComponentChildren
}

/** The step between a decision and what it does. A verdict that others gave first closes it; other failures stay in it. */
export function Confirm({ view, title, verb, tone, act, children, onClose, onDone }: ConfirmProps) {
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  const confirm = async () => {
    setBusy(true)
    const failed = await act()
    setBusy(false)
    if (failed === undefined) onDone()
    else setFailure(failed)
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <Line view={view} />
      {children}
      {failure !== undefined && (
        <p class="notice bad" role="alert">
          {textOf(failure)}
        </p>
      )}
      <p class="actions">
        <button type="button" onClick={failure === undefined ? onClose : onDone}>
          {failure === undefined ? 'Cancel' : 'Close'}
        </button>
        <button type="button" class={tone} disabled={isBusy} onClick={() => void confirm()}>
          {isBusy ? 'Sending…' : verb}
        </button>
      </p>
    </Dialog>
  )
}

function Line({ view: { method, url } }: { readonly view: HitlRequest }) {
  return (
    <p class="line">
      <Method name={method} /> <Text value={url} limit={400} />
    </p>
  )
}

const texts: Readonly<Record<string, string>> = {
  not_as_seen: 'The request is not the one on your screen. Nothing was done.',
  digest_mismatch: 'What is stored is not what was shown, or cannot be opened. Nothing was sent.',
  withdrawn: 'The agent took the request back first. Nothing was sent.',
  not_found: 'The request expired or was deleted first. Nothing was sent.',
  store_unavailable: 'The gateway cannot record a verdict now, so nothing was done. Your comment is kept.',
  offline:
    'The gateway does not answer. Your comment is kept; look at the request again before you repeat the verdict.',
}

function textOf({ code, detail, problem }: Failure): string {
  if (code === 'already_decided') return `It was decided first: ${problem.hitlStatus?.toLowerCase()}.`
  return Object.hasOwn(texts, code) ? (texts[code] ?? detail) : detail
}
