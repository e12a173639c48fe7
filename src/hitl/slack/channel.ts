/** Messages of the Slack app in one channel. Only the delivery queue sends and edits them, by what the store says then. */

import { type MessageTable, type StaleMessage, stateOf } from '../../storage/messages.ts'
import type { HitlBrief } from '../../storage/store.ts'
import { listLink } from '../messages/message.ts'
import { noticeOf, noticeOfMore } from '../messages/notice.ts'
import { slackMessage } from '../messages/slack.ts'
import { type NotAccepted, queuesOfSlack, type Receiver, type SlackSettings } from '../receiver.ts'
import { type SlackCall, textAt } from './api.ts'
import { endMessage, noticeOfRequest, type RequestSight, requestMessage, shownOf } from './request.ts'

export interface KeptRequests {
  readonly find: (id: string) => Promise<HitlBrief | undefined>
  readonly messages: MessageTable
}

export interface ChannelParts {
  readonly settings: SlackSettings['Channels'][number]
  readonly call: SlackCall
  readonly sight: RequestSight
  /** Absent: an event is told as it is, and nothing is remembered of it. */
  readonly requests: KeptRequests | undefined
  readonly report: (what: string, error: unknown) => void
}

/** Messages that are edited at a time. */
const editedAtOnce = 20
/** Nobody can edit such a message any more. */
const gone = [
  'message_not_found',
  'channel_not_found',
  'is_archived',
  'not_in_channel',
  'cant_update_message',
  'edit_window_closed',
]
/** Requests in these states never change again. */
const final = ['Denied ', 'Withdrawn ', 'Expired ', 'Approved completed']

export function slackChannel(parts: ChannelParts): Receiver {
  const { settings, call, sight, requests } = parts
  const channel = settings.Id ?? ''
  const post = async (message: object, signal: AbortSignal) => call('chat.postMessage', { channel, ...message }, signal)

  async function send(id: string, { find, messages }: KeptRequests, signal: AbortSignal) {
    const item = await find(id)
    // What was decided meanwhile needs nobody.
    if (item?.status !== 'Pending') return undefined
    const { refused, body } = await post(requestMessage(item, sight), signal)
    if (refused !== undefined) return refused
    const kept = { channel, reference: textAt(body, 'ts'), hitlId: id, state: stateOf(item) }
    const shown = shownOf(noticeOfRequest(item, sight))
    // Sending it again would be worse: whoever presses a button of it makes it known.
    await messages.keep({ ...kept, shown }).catch(error => parts.report('a message of Slack could not be noted', error))
    return undefined
  }

  async function edit(stale: StaleMessage, { find, messages }: KeptRequests, signal: AbortSignal) {
    const { reference, hitlId } = stale
    const again = stale.status === 'Pending' ? await find(hitlId) : undefined
    // Its time is over; the event is on its way.
    if (stale.status === 'Pending' && again === undefined) return undefined
    const message = again === undefined ? endMessage(stale, sight.nameOf) : requestMessage(again, sight)
    const { refused, error = '' } = await call('chat.update', { channel, ts: reference, ...message }, signal)
    const isGone = gone.includes(error)
    if (refused?.isPassing) return refused
    const state = stateOf(stale)
    await messages.note({ channel, reference }, isGone || final.includes(state) ? null : state)
    return isGone ? undefined : refused
  }

  async function catchUp(signal: AbortSignal): Promise<NotAccepted | undefined> {
    if (requests === undefined) return undefined
    for (const stale of await requests.messages.stale(channel, editedAtOnce)) {
      const refused = await edit(stale, requests, signal)
      if (refused !== undefined) return refused
    }
    return undefined
  }

  return {
    ...{ Rules: settings.Rules, Owners: settings.Owners, queues: queuesOfSlack(settings), isChat: true },
    async send(event, signal) {
      if (requests === undefined) return (await post(slackMessage(noticeOf(event, undefined)), signal)).refused
      return event.type === 'pending' ? send(event.hitlId ?? '', requests, signal) : catchUp(signal)
    },
    async sendMore(_, count, signal) {
      return (await post(slackMessage(noticeOfMore(count, listLink(sight))), signal)).refused
    },
    catchUp,
  }
}
