/** Messages to webhooks: an event as JSON for programs, or in the form of a service for people. */
import { createHmac } from 'node:crypto'
import { printableJson } from '../../base/deceptive.ts'
import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { HitlEvent } from '../events.ts'
import { discordMessage } from './discord.ts'
import { type Notice, noticeOf, noticeOfMore } from './notice.ts'
import { ntfyMessage } from './ntfy.ts'
import { pagerDutyMessage } from './pager-duty.ts'
import { slackMessage } from './slack.ts'
import { teamsMessage } from './teams.ts'

export type Hook = Config['HumanInTheLoop']['Webhooks'][number]

export interface WebhookMessage {
  readonly url: string
  /** Flat: name, value, name, value. */
  readonly headers: readonly string[]
  readonly body: string
}

/** Posts once, past the egress guard and without following redirects. Resolves with the status; rejects, also at the abort. */
export type Post = (message: WebhookMessage, signal: AbortSignal) => Promise<number>

export interface MessageOptions {
  readonly clock: Pick<Clock, 'now'>
  /** Origin under which people reach the console; without it messages have no link. */
  readonly publicUrl?: string | undefined
}

/** What a format writes of. */
interface Subject {
  readonly event: HitlEvent
  readonly notice: Notice
  readonly hook: Hook
}

const formats: Readonly<Record<Hook['Format'], (subject: Subject) => object>> = {
  generic: ({ event, notice }) => genericMessage(event, notice.link),
  slack: ({ notice }) => slackMessage(notice),
  teams: ({ notice }) => teamsMessage(notice),
  discord: ({ notice }) => discordMessage(notice),
  ntfy: ({ notice, hook }) => ntfyMessage(notice, topicOf(hook)),
  pagerDuty: ({ event, notice, hook }) => pagerDutyMessage(notice, event, given(hook.Key)),
}

/** Formats that people read one by one: a burst of requests becomes one message. */
export const isChat = ({ Format }: Hook): boolean => Format !== 'generic' && Format !== 'pagerDuty'

export function messageOf(hook: Hook, event: HitlEvent, options: MessageOptions): WebhookMessage {
  const notice = noticeOf(event, linkOf(event, options))
  return post(hook, formats[hook.Format]({ event, notice, hook }), options)
}

/** One message about several requests, for a format that people read; the newest of them is `event`. */
export function messageOfMore(hook: Hook, event: HitlEvent, count: number, options: MessageOptions): WebhookMessage {
  const notice = noticeOfMore(count, listLink(options))
  return post(hook, formats[hook.Format]({ event, notice, hook }), options)
}

/**
 * `Gateway-Signature: t=<seconds since the epoch>,v1=<hex>`, where v1 is the HMAC-SHA256 over `<t>.<body>`. The receiver
 * refuses old times, and so messages that an attacker recorded.
 */
function post(hook: Hook, content: object, { clock }: MessageOptions): WebhookMessage {
  const body = printableJson(JSON.stringify(content))
  const headers = ['Content-Type', 'application/json', 'User-Agent', 'agent-gateway']
  if (hook.Secret !== undefined) {
    const time = Math.floor(clock.now() / 1_000)
    const signature = createHmac('sha256', hook.Secret).update(`${time}.${body}`).digest('hex')
    headers.push('Gateway-Signature', `t=${time},v1=${signature}`)
  }
  if (hook.Format === 'ntfy' && hook.Key !== undefined) headers.push('Authorization', `Bearer ${hook.Key}`)
  return { url: addressOf(hook), headers, body }
}

/** A hook without what its format needs does not start: config/check.ts. */
function given(setting: string | undefined): string {
  if (setting === undefined) throw new RangeError('a setting of this webhook is absent')
  return setting
}

const addressOf = ({ Url, Format }: Hook): string => (Format === 'ntfy' ? new URL('/', given(Url)).href : given(Url))
const topicOf = ({ Url }: Hook): string => new URL(given(Url)).pathname.slice(1)

/** The page of the console about an event. */
export function linkOf({ hitlId, data }: HitlEvent, { publicUrl }: Pick<MessageOptions, 'publicUrl'>) {
  const about = data['agentId'] === '' ? 'overview' : `agents/${data['agentId']}`
  const page = hitlId === null ? about : `requests/${hitlId}`
  return publicUrl && `${publicUrl}/console/#/${page}`
}

/** The list of what waits. */
export const listLink = ({ publicUrl }: Pick<MessageOptions, 'publicUrl'>): string | undefined =>
  publicUrl && `${publicUrl}/console/#/requests`

const genericMessage = ({ id, type, at, hitlId, data }: HitlEvent, url: string | undefined) => ({
  ...{ id, type: `hitl.${type}`, at: new Date(at).toISOString(), hitlId, ...(url && { url }), data },
})
