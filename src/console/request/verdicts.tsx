import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { call } from '../api.ts'
import { useKeys } from '../keys.ts'
import { announce, toast } from '../notices.ts'
import type { Reading } from '../parts/read.ts'
import type { Row } from '../queue/store.ts'
import { hrefOf } from '../router.ts'
import { isAdmin, mayDecide, me, ownText } from '../session.ts'
import type { AgentActivity, HitlRequest } from '../types.ts'
import { ApproveDialog, GrantDialog } from './approve-dialog.tsx'
import { barOf, barText } from './asking.ts'
import { DenyDialog, QuarantineDialog, ResendDialog } from './dialogs.tsx'

export interface VerdictProps {
  readonly view: HitlRequest
  /** Of the queue; undefined when it is not in it. */
  readonly row: Row | undefined
  readonly asking: Reading<AgentActivity>
  readonly onAsk: (isOpen: boolean) => void
  /** A verdict was given here. */
  readonly onDone: () => void
  /** The request ended under an open dialog. */
  readonly onEnded: (text: string) => void
  /** What is shown may be old. */
  readonly onStale: () => void
}

/** For the reviewer whose dialog it closed. */
export const expiredText = 'This request expired while the dialog was open. Nothing was sent.'

type Asked = 'approve' | 'grant' | 'deny' | 'resend' | 'quarantine' | 'grantLater'

/** Asked of a request that no longer waits. */
const later: ReadonlySet<Asked> = new Set(['resend', 'grantLater'])
/** These send something of the agent, now or later. */
const sending: ReadonlySet<Asked> = new Set(['approve', 'grant', 'resend', 'grantLater'])

/** What the reviewer can do. Each opens a confirmation; nothing is sent from here. */
export function Verdicts({ view, row, asking, onAsk, onDone, onEnded, onStale }: VerdictProps) {
  const [asked, setAsked] = useState<Asked>()
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string>()
  const why = whyNot(view, row)
  const waits = view.status === 'Pending' && row?.ending === undefined
  const mayVote = why === undefined && view.replay === null
  const bar = barOf(asking)
  const barred = bar && barText(bar)
  const ask = (what: Asked) => () => {
    if (!mayVote || !waits) return
    if (barred !== undefined && sending.has(what)) announce(barred)
    else setAsked(what)
  }
  useKeys({ a: ask('approve'), d: ask('deny'), g: ask('grant') })
  useEffect(() => {
    if (barred !== undefined && waits) announce(barred)
  }, [barred, waits])
  const close = () => {
    setAsked(undefined)
    setProblem(undefined)
    onStale()
  }
  const end = (text: string) => {
    setAsked(undefined)
    onEnded(text)
  }
  // Before the next key: a dialog ends with its request, unless its own verdict is being answered.
  useLayoutEffect(() => {
    onAsk(asked !== undefined)
    if (asked === undefined || isBusy) return
    if (!later.has(asked) && !waits) end(problem ?? endedText(view, row))
    else if (barred !== undefined && sending.has(asked)) end(`The dialog is closed. Nothing was sent. ${barred}`)
  }, [asked, waits, isBusy, barred])
  const done = () => {
    setAsked(undefined)
    setBusy(false)
    if (asked === 'quarantine' || asked === 'grantLater') onStale()
    else onDone()
  }
  const busy = (is: boolean, what?: string) => {
    setBusy(is)
    setProblem(what)
  }
  const props = { view, onClose: close, onDone: done, onEnded: end, onBusy: busy }
  return (
    <>
      {why !== undefined && waits && <p class="notice">{why}</p>}
      {why === undefined && waits && barred !== undefined && <Bar view={view} text={barred} />}
      {waits && (
        <Choices
          view={view}
          mayDeny={mayVote}
          mayApprove={mayVote && barred === undefined}
          onAsk={what => ask(what)()}
          onQuarantine={isAdmin.value && bar === undefined ? () => setAsked('quarantine') : undefined}
        />
      )}
      <Approvals view={view} />
      {barred === undefined && <Later view={view} mayDecide={why === undefined} onAsk={setAsked} />}
      {(asked === 'approve' || asked === 'grant') && <ApproveDialog {...props} withGrant={asked === 'grant'} />}
      {asked === 'deny' && <DenyDialog {...props} />}
      {asked === 'resend' && <ResendDialog {...props} />}
      {asked === 'grantLater' && <GrantDialog {...props} />}
      {asked === 'quarantine' && <QuarantineDialog {...props} />}
    </>
  )
}

function Bar({ view, text }: { readonly view: HitlRequest; readonly text: string }) {
  return (
    <p class="notice warn">
      {text} <a href={hrefOf('agents', view.agentId)}>See the agent</a>
    </p>
  )
}

interface ChoicesProps {
  readonly view: HitlRequest
  readonly mayDeny: boolean
  readonly mayApprove: boolean
  readonly onAsk: (what: 'approve' | 'grant' | 'deny') => void
  readonly onQuarantine: (() => void) | undefined
}

/** Two verdicts, and the rest beside them. On a narrow screen the rest is in a menu. */
function Choices({ view, mayDeny, mayApprove, onAsk, onQuarantine }: ChoicesProps) {
  const [isOpen, setOpen] = useState(false)
  if (!mayDeny && onQuarantine === undefined) return null
  return (
    <div class="choices">
      {mayApprove && (
        <button type="button" class="primary" onClick={() => onAsk('approve')}>
          Approve…
        </button>
      )}
      {mayDeny && (
        <button type="button" class="danger" onClick={() => onAsk('deny')}>
          Deny…
        </button>
      )}
      <button type="button" class="more-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        More
      </button>
      <div class={isOpen ? 'more is-open' : 'more'}>
        {/* Grants pass no budget. */}
        {mayApprove && view.budget === undefined && (
          <button type="button" onClick={() => onAsk('grant')}>
            Approve with a grant…
          </button>
        )}
        {mayDeny && (
          <button type="button" class="plain" onClick={() => void extend(view)}>
            +5 minutes
          </button>
        )}
        {onQuarantine !== undefined && (
          <button type="button" class="plain" onClick={onQuarantine}>
            Quarantine the agent…
          </button>
        )}
      </div>
    </div>
  )
}

/** What became of a request, for the reviewer whose dialog it closed. */
function endedText(view: HitlRequest, row: Row | undefined): string {
  const what = row?.ending?.what ?? view.status.toLowerCase()
  const { by } = row?.ending ?? { by: view.people?.[view.decidedBy ?? ''] }
  const who = by === undefined || by === '' ? '' : ` by ${by}`
  switch (what) {
    case 'withdrawn':
      return 'The agent withdrew this request while the dialog was open. Nothing was sent.'
    case 'expired':
      return expiredText
    default:
      return `This request was ${what}${who} while the dialog was open. The dialog is closed.`
  }
}

interface LaterProps {
  readonly view: HitlRequest
  readonly mayDecide: boolean
  readonly onAsk: (what: 'resend' | 'grantLater') => void
}

/** What may be done with a request that was sent. */
function Later({ view, mayDecide, onAsk }: LaterProps) {
  const maySend = mayDecide && (view.replay === 'failed' || view.replay === 'unknown')
  if (!maySend && !mayGrantLater(view)) return null
  return (
    <p class="actions">
      {maySend ? (
        <button type="button" class="danger" onClick={() => onAsk('resend')}>
          Send again…
        </button>
      ) : (
        <button type="button" onClick={() => onAsk('grantLater')}>
          Grant the next ones…
        </button>
      )}
    </p>
  )
}

/** Grants pass no budget, and answer no rule that asks for two. */
export function mayGrantLater(view: HitlRequest): boolean {
  const { status, replay, budget, approvalsNeeded = 1 } = view
  const isAnswered = status === 'Approved' && replay === 'completed'
  const isOurs = mayDecide.value && ownText(view) === undefined
  return isAnswered && isOurs && budget === undefined && approvalsNeeded < 2
}

/** A form that would be refused is never shown. */
function whyNot(view: HitlRequest, row: Row | undefined): string | undefined {
  if (!mayDecide.value) return 'Verdicts need the role reviewer or admin.'
  const own = ownText(view)
  if (own !== undefined) return own
  const approvedBy = row?.view.approvedBy ?? view.approvedBy ?? []
  return approvedBy.includes(me.value?.id ?? '') ? 'You approved it. Another reviewer must approve it too.' : undefined
}

function Approvals({ view }: { readonly view: HitlRequest }) {
  const { approvalsNeeded = 1, approvedBy = [], people = {} } = view
  if (approvalsNeeded < 2) return null
  const names = approvedBy.map(id => people[id] || id).join(', ')
  return (
    <p class="hint">
      {approvedBy.length} of {approvalsNeeded} approvals{names === '' ? '' : `: ${names}`}
    </p>
  )
}

async function extend({ id }: HitlRequest): Promise<void> {
  const answer = await call('POST', `/hitl/${id}/extend`, { body: { minutes: 5 } })
  toast(answer.ok ? 'Five more minutes.' : answer.failure.detail, answer.ok ? 'good' : 'bad')
}
