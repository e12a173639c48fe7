import type { Failure } from '../api.ts'
import { Act, type ActProps } from '../parts/act.tsx'
import { Method } from '../parts/marks.tsx'
import { Cut, Text } from '../parts/text.tsx'
import { whatOf } from '../queue/what.tsx'
import type { HitlRequest } from '../types.ts'

export interface DialogProps {
  readonly view: HitlRequest
  readonly onClose: () => void
  readonly onDone: () => void
  /** It was not done, and never will be: the request was decided, withdrawn or expired first. */
  readonly onEnded: (text: string) => void
  /** Whether an answer is awaited, and what went wrong with the last one. */
  readonly onBusy: (isBusy: boolean, problem?: string) => void
}

type ConfirmProps = DialogProps & Omit<ActProps, 'isBlocked'>

/** The step between a decision and what it does. It ends with the request; other failures stay in it. */
export function Confirm({ view, act, children, onEnded, onBusy, ...props }: ConfirmProps) {
  const decide = async () => {
    onBusy(true)
    const failed = await act()
    // Done: busy until the dialog is gone, or an event about this verdict would end it as that of somebody else.
    if (failed === undefined) return undefined
    const failure = { ...failed, detail: textOf(failed) }
    onBusy(false, failure.detail)
    if (isEnd(failed)) onEnded(failure.detail)
    return failure
  }
  return (
    <Act {...props} act={decide}>
      <Line view={view} />
      {children}
    </Act>
  )
}

function Line({ view }: { readonly view: HitlRequest }) {
  const what = whatOf(view)
  return (
    <p class="line">
      {what !== null && <Text value={what} as="strong" />}
      <span>
        <Method name={view.method} /> <Cut pieces={[{ text: view.url }]} kind="escaped" first={400} />
      </span>
    </p>
  )
}

/** After these, no verdict counts any more, or none that sends something. */
const isEnd = ({ code, problem }: Failure): boolean =>
  ['already_decided', 'withdrawn', 'not_found'].includes(code) || (agentCodes.has(code) && problem.hitlId !== undefined)

/** Of the agent that asks, or of the reviewer, whose text must not be lost. */
const agentCodes: ReadonlySet<string> = new Set(['agent_quarantined', 'agent_inactive', 'agent_revoked'])

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
