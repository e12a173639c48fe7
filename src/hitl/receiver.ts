/** Where events go: a webhook, or e-mail. What waits for a receiver stands in queues of the store. */
import { hash } from 'node:crypto'
import type { Config } from '../config/schema.ts'
import type { WebhookSubscription } from '../storage/deliveries.ts'
import type { HitlEvent } from './events.ts'
import { type Hook, isChat, type MessageOptions, messageOf, messageOfMore, type Post } from './messages/message.ts'
import { incidentEvents } from './messages/pager-duty.ts'

type HitlSettings = Pick<Config['HumanInTheLoop'], 'Webhooks' | 'Email' | 'Slack' | 'Push'>
export type MailSettings = HitlSettings['Email']
export type SlackSettings = HitlSettings['Slack']

/** Messages that wait in an order of their own. */
export interface MessageQueue {
  /** In the store. */
  readonly name: string
  /** Of its receiver, for the log. */
  readonly label: string
  readonly types: WebhookSubscription['types']
  /** How long a message waits; it is not sent when its request was decided until then. */
  readonly afterMs: number
}

export interface NotAccepted {
  readonly failure: unknown
  /** The same message may be accepted later. */
  readonly isPassing: boolean
  /** The service asks to wait so long, milliseconds. */
  readonly waitMs?: number | undefined
}

/** Sends once. Resolves with undefined when the message was accepted; rejects when the service was not reached, or at the abort. */
type Send<M extends readonly unknown[]> = (...message: [...M, AbortSignal]) => Promise<NotAccepted | undefined>

export interface Receiver extends Pick<Hook, 'Rules' | 'Owners'> {
  readonly queues: readonly MessageQueue[]
  /** People read its messages one by one: a burst of requests becomes one message. */
  readonly isChat: boolean
  readonly send: Send<[event: HitlEvent]>
  /** One message about so many requests, of which `event` is the newest. */
  readonly sendMore: Send<[event: HitlEvent, count: number]>
  /** Brings messages up to date that were sent before; called now and then. */
  readonly catchUp?: Send<[]>
}

const minute = 60_000

/** The queues of all receivers of these settings. */
export const queuesOf = ({ Webhooks, Email, Slack, Push }: HitlSettings): readonly MessageQueue[] => [
  ...Webhooks.flatMap(queuesOfHook),
  ...(Email.Host === undefined ? [] : queuesOfMail(Email)),
  ...(Slack.BotToken === undefined ? [] : Slack.Channels.flatMap(queuesOfSlack)),
  ...(Push.Enabled ? Push.Hosts.flatMap(queuesOfPush) : []),
]

/** The events that a gateway with these settings stores for them. */
export function subscriptionsOf(settings: HitlSettings): readonly WebhookSubscription[] {
  const byName = Map.groupBy(queuesOf(settings), ({ name }) => name)
  return [...byName].map(([hook, same]) => ({ hook, types: same.flatMap(({ types }) => types) }))
}

/** The address often contains a key: the name of the queue is a digest of it. */
function queuesOfHook(hook: Hook, index: number): readonly MessageQueue[] {
  const name = hash('sha256', `${hook.Format} ${hook.Url}`).slice(0, 32)
  return queuesNamed({ name, label: `webhook ${index}`, types: typesOf(hook) }, hook)
}

export const queuesOfMail = (mail: MailSettings): readonly MessageQueue[] =>
  queuesNamed({ name: 'e-mail', label: 'e-mail', types: typesOf({ ...mail, Format: 'generic' }) }, mail)

/** Whatever changes the state of a request: its message shows it. */
const stateEvents = [
  'pending',
  'approved',
  'released',
  'denied',
  'withdrawn',
  'expired',
  'completed',
  'failed',
  'unknown',
]

export const queuesOfSlack = ({ Id }: Pick<SlackSettings['Channels'][number], 'Id'>): readonly MessageQueue[] => [
  { name: `slack ${Id}`, label: `Slack channel ${Id}`, types: stateEvents, afterMs: 0 },
]

/** A queue for each push service: one that is down delays no other. */
export const queuesOfPush = (host: string): readonly MessageQueue[] => [
  { name: `push ${host}`, label: `Push service ${host}`, types: ['pending'], afterMs: 0 },
]

/** With `AfterMinutes` requests have a queue of their own: what ends a request is sent at once. */
function queuesNamed(
  queue: Pick<MessageQueue, 'name' | 'label' | 'types'>,
  { AfterMinutes }: Pick<Hook, 'AfterMinutes'>,
): readonly MessageQueue[] {
  if (AfterMinutes === 0) return [{ ...queue, afterMs: 0 }]
  return [
    { ...queue, types: queue.types.filter(type => type !== 'pending'), afterMs: 0 },
    { ...queue, name: `${queue.name}-after`, types: ['pending'], afterMs: AfterMinutes * minute },
  ]
}

function typesOf({ Events, Format }: Pick<Hook, 'Events' | 'Format'>): MessageQueue['types'] {
  if (Format === 'pagerDuty') return [...new Set([...Events, ...incidentEvents])]
  return Events.length === 0 ? ['pending'] : Events
}

export interface WebhookParts extends MessageOptions {
  /** Its place in the settings. */
  readonly index: number
  readonly post: Post
}

export function webhookReceiver(hook: Hook, { index, post, ...options }: WebhookParts): Receiver {
  const answerOf = (status: number): NotAccepted | undefined =>
    status >= 200 && status < 300
      ? undefined
      : { failure: `answered ${status}`, isPassing: status >= 500 || status === 408 || status === 429 }
  return {
    ...{ Rules: hook.Rules, Owners: hook.Owners, queues: queuesOfHook(hook, index), isChat: isChat(hook) },
    send: async (event, signal) => answerOf(await post(messageOf(hook, event, options), signal)),
    sendMore: async (event, count, signal) => answerOf(await post(messageOfMore(hook, event, count, options), signal)),
  }
}
