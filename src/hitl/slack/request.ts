/** What Slack shows of a held request, and whether it may be approved there. */
import { escapeDeceptive } from '../../base/deceptive.ts'
import { detectors } from '../../policy/detectors/detectors.ts'
import type { StaleMessage } from '../../storage/messages.ts'
import type { HitlBrief } from '../../storage/store.ts'
import { linkOf, type MessageOptions } from '../messages/message.ts'
import { factsIn, type Notice, noticeOf } from '../messages/notice.ts'
import { plain, section, slackBlocks, slackContent } from '../messages/slack.ts'
import { parseDecision } from '../view.ts'

export interface RequestSight extends Pick<MessageOptions, 'publicUrl'> {
  readonly verdicts: 'none' | 'deny' | 'rules'
  /** Name of an agent; undefined when it is not in the registry. */
  readonly nameOf: (agentId: string) => string | undefined
  /** Whether this rule opens its requests for approvals in a chat now. */
  readonly isOpen: (policy: string | null, rule: string | null) => boolean
}

export type ChatVerdict = 'approve' | 'deny'

const personal = new Set(detectors.filter(({ group }) => group === 'pii').map(({ id }) => id))

export function noticeOfRequest(item: HitlBrief, sight: RequestSight): Notice {
  const { id, agentId, createdAt, expiresAt } = item
  const { title, operation, ruleReason, chat } = parseDecision(item)
  const times = { expiresAt: new Date(expiresAt).toISOString() }
  const data = { ...item, title, operation, ruleReason, agentName: sight.nameOf(agentId), ...times }
  const event = { id, type: 'pending', at: createdAt, hitlId: id, data } as const
  const notice = noticeOf(event, linkOf(event, sight))
  return { ...notice, facts: [...notice.facts, ...factsIn((chat ?? []).map(({ field, value }) => [field, value]))] }
}

/** The verdicts that people may give in Slack. What may be approved must have been seen by whoever approves. */
export function verdictsOn(item: HitlBrief, { verdicts, isOpen }: RequestSight): readonly ChatVerdict[] {
  if (verdicts === 'none' || item.status !== 'Pending') return []
  const { chat, source, findings } = parseDecision(item)
  const isShown = chat != null && source !== 'risk' && findings !== undefined
  const hasSecret = Object.keys(findings?.counts ?? {}).some(detector => !personal.has(detector))
  const isPlain = item.approvalsNeeded === 1 && item.replay === null
  if (verdicts === 'deny' || !isShown || hasSecret || !isPlain) return ['deny']
  return isOpen(item.policyName, item.rule) ? ['approve', 'deny'] : ['deny']
}

const names = { approve: 'Approve', deny: 'Deny' }
const styles = { approve: 'primary', deny: 'danger' }

export function requestMessage(item: HitlBrief, sight: RequestSight) {
  const notice = noticeOfRequest(item, sight)
  const open = { type: 'button', action_id: 'open', text: plain('Open'), url: notice.link }
  const buttons = verdictsOn(item, sight).map(verdict => ({
    ...{ type: 'button', action_id: verdict, text: plain(names[verdict]), style: styles[verdict] },
    value: `${item.id} ${item.digest}`,
  }))
  const elements = [...(notice.link === undefined ? [] : [open]), ...buttons]
  const { blocks, ...rest } = slackContent(notice)
  return { ...rest, blocks: [...blocks, ...(elements.length > 0 ? [{ type: 'actions', elements }] : [])] }
}

/** What a message goes on to show when its request has changed. */
export const shownOf = ({ facts }: Notice): string => JSON.stringify(facts)

/** The message once its request has ended: what was asked, and what became of it. Nothing can be pressed. */
export function endMessage(stale: StaleMessage, nameOf: RequestSight['nameOf']) {
  // Written by `shownOf`.
  return slackContent({ headline: outcomeOf(stale, nameOf), facts: JSON.parse(stale.shown) })
}

function outcomeOf(
  { status, replay, decidedBy, responseStatus }: StaleMessage,
  nameOf: RequestSight['nameOf'],
): string {
  const who = decidedBy === null ? 'a reviewer' : escapeDeceptive(nameOf(decidedBy) ?? decidedBy)
  if (status === 'Denied') return `Denied by ${who}`
  if (status === 'Withdrawn') return 'Withdrawn by its agent'
  if (status === 'Expired') return 'Expired without a verdict'
  if (replay === 'completed') return `Approved by ${who}: answered with ${responseStatus}`
  if (replay === 'failed') return `Approved by ${who}: sent, without an answer`
  return replay === 'unknown' ? `Approved by ${who}: perhaps sent` : `Approved by ${who}: sending`
}

/** A verdict that a form gives: the form is for this digest alone. */
export interface FormSubject {
  readonly id: string
  readonly digest: string
  readonly verdict: ChatVerdict
  readonly channel: string
  readonly message: string
}

/** The form that repeats the request before a verdict. */
export function verdictForm(item: HitlBrief, subject: FormSubject, sight: RequestSight) {
  const name = names[subject.verdict]
  const effect = subject.verdict === 'approve' ? 'sends exactly this request' : 'ends this request for good'
  const element = { type: 'plain_text_input', action_id: 'text', multiline: true, max_length: 2_000 }
  const comment = { type: 'input', block_id: 'comment', optional: true, label: plain('Comment'), element }
  return {
    ...{ type: 'modal', callback_id: 'verdict', private_metadata: JSON.stringify(subject) },
    ...{ title: plain(`${name} the request`), submit: plain(name), close: plain('Cancel') },
    blocks: [...slackBlocks(noticeOfRequest(item, sight)), section(`${name} ${effect}.`), comment],
  }
}

/** The form for the code that the console shows. */
export function linkForm(channel: string) {
  const element = { type: 'plain_text_input', action_id: 'text', max_length: 32 }
  return {
    ...{ type: 'modal', callback_id: 'link', private_metadata: JSON.stringify({ channel }) },
    ...{ title: plain('Link my account'), submit: plain('Link'), close: plain('Cancel') },
    blocks: [
      section(
        'Sign in to the console, open your name at the top, and make a code for Slack. It is valid for a minute.',
      ),
      { type: 'input', block_id: 'code', label: plain('Code'), element },
    ],
  }
}
