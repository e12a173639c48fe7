/** Messages to webhooks: the event as JSON or as a text for people, signed. */
import { createHmac } from 'node:crypto'
import { printableJson } from '../base/deceptive.ts'
import type { Config } from '../config/schema.ts'
import type { Clock } from '../runtime/clock.ts'
import type { HitlEvent } from './events.ts'

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

/**
 * `Gateway-Signature: t=<seconds since the epoch>,v1=<hex>`, where v1 is the HMAC-SHA256 over `<t>.<body>`. The receiver
 * refuses old times, and so messages that an attacker recorded.
 */
export function messageOf(hook: Hook, event: HitlEvent, { clock, publicUrl }: MessageOptions): WebhookMessage {
  const link = publicUrl === undefined ? undefined : publicUrl + pageOf(event)
  const content = hook.Format === 'slack' ? { text: slackText(event, link) } : genericBody(event, link)
  const body = printableJson(JSON.stringify(content))
  const headers = ['Content-Type', 'application/json', 'User-Agent', 'agent-gateway']
  if (hook.Secret !== undefined) {
    const time = Math.floor(clock.now() / 1_000)
    const signature = createHmac('sha256', hook.Secret).update(`${time}.${body}`).digest('hex')
    headers.push('Gateway-Signature', `t=${time},v1=${signature}`)
  }
  // A hook without an address does not start: config/check.ts.
  return { url: hook.Url as string, headers, body }
}

/** The page of the console about an event. */
function pageOf({ hitlId, data }: HitlEvent): string {
  return hitlId === null ? `/console/#/agents/${data['agentId']}` : `/console/#/requests/${hitlId}`
}

function genericBody({ id, type, at, hitlId, data }: HitlEvent, url: string | undefined) {
  return { id, type: `hitl.${type}`, at: new Date(at).toISOString(), hitlId, ...(url && { url }), data }
}

/** Slack's text format has only these three special characters. */
function slackText({ type, hitlId, data }: HitlEvent, link: string | undefined): string {
  const lines =
    type === 'pending'
      ? pendingLines(data)
      : [hitlId === null ? `Agent ${data['agentId']}: ${type} (${data['cause']})` : `Request ${hitlId}: ${type}`]
  const by = data['by'] === undefined ? [] : [`by ${data['by']}`]
  const text = [...lines, ...by].join('\n')
  const plain = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return link === undefined ? plain : `${plain}\n<${link}|Open in the console>`
}

function pendingLines(data: HitlEvent['data']): string[] {
  const { agentId, agentName, title, operation } = data
  const what = title ?? operation
  return [
    `Review needed until ${data['expiresAt']}: ${data['method']} ${data['url']}`,
    ...(typeof what === 'string' ? [what] : []),
    `Agent ${agentName ? `${agentName} (${agentId})` : agentId} of ${data['ownerId']}`,
    `${data['reason']}`,
    `GET /hitl/${data['id']}`,
  ]
}
