/** Sends pushes to the browsers of reviewers at one push service. They are for locked screens: agent and rule alone. */
import type { Clock } from '../../runtime/clock.ts'
import type { PushSubscription, SubscriptionTable } from '../../storage/subscriptions.ts'
import type { HitlEvent } from '../events.ts'
import { fit, plainText } from '../messages/notice.ts'
import { type NotAccepted, queuesOfPush, type Receiver } from '../receiver.ts'
import { encryptPush } from './encrypt.ts'
import type { Vapid } from './vapid.ts'

interface PushPost {
  readonly url: string
  readonly headers: readonly string[]
  readonly body: Buffer
}

export interface PushParts {
  readonly store: Pick<SubscriptionTable, 'all' | 'remove'>
  readonly clock: Pick<Clock, 'now'>
  /** Posts past the egress guard. Resolves with the status. */
  readonly post: (message: PushPost, signal: AbortSignal) => Promise<number>
  /** Undefined for those who may decide nothing. */
  readonly reviewerOf: (agentId: string) => unknown
  readonly report: (what: string, error: unknown) => void
}

export interface PushMessage {
  /** The event that it is about, or the newest of them. */
  readonly event: HitlEvent
  readonly content: object
  readonly signal: AbortSignal
}

/** Answers for a browser that does not want pushes any more (RFC 8030 section 7.3). */
const gone = [404, 410]
const longestSeconds = 86_400
/** Calls of a push service at the same time. */
const sentAtOnce = 20

export interface PushService {
  /** The pattern of its hosts. */
  readonly host: string
  /** Whether browsers at this host are told by it, and by no other. */
  readonly serves: (hostname: string) => boolean
}

/** Sends to one browser. Rejects when its push service was not reached, or at the abort. */
export type SendPush = (one: PushSubscription, message: PushMessage) => Promise<'accepted' | 'dropped' | NotAccepted>

export function createSendPush(vapid: () => Promise<Vapid>, parts: PushParts): SendPush {
  const { store, clock, post, reviewerOf } = parts

  async function drop({ id, agentId }: PushSubscription): Promise<'dropped'> {
    await store.remove(id, agentId, null)
    return 'dropped'
  }

  return async (one, { event, content, signal }) => {
    if (reviewerOf(one.agentId) === undefined) return drop(one)
    const { authorization } = await vapid()
    const headers = ['TTL', String(secondsLeft(event, clock.now())), 'Urgency', 'high', 'Content-Encoding', 'aes128gcm']
    headers.push('Content-Type', 'application/octet-stream', 'Authorization', authorization(one.endpoint))
    const body = encryptPush(Buffer.from(JSON.stringify(content)), one)
    const status = await post({ url: one.endpoint, headers, body }, signal)
    if (gone.includes(status)) return drop(one)
    if (status >= 200 && status < 300) return 'accepted'
    return { failure: `answered ${status}`, isPassing: status >= 500 || status === 429 }
  }
}

export function pushReceiver({ host, serves }: PushService, send: SendPush, parts: PushParts): Receiver {
  const { store, report } = parts
  /** The browsers that have the message under way: a try after a failure sends it to the others alone. */
  let sent = { event: '', ids: new Set<string>() }

  async function sendAll(message: PushMessage): Promise<NotAccepted | undefined> {
    if (sent.event !== message.event.id) sent = { event: message.event.id, ids: new Set() }
    const { ids } = sent
    const isWanted = ({ id, endpoint }: PushSubscription): boolean => !ids.has(id) && serves(new URL(endpoint).hostname)
    const wanted = (await store.all()).filter(isWanted)
    let passing: NotAccepted | undefined
    const sendOne = async (one: PushSubscription): Promise<void> => {
      const outcome = await send(one, message).catch(asPassing)
      const refused = typeof outcome === 'string' ? undefined : outcome
      if (refused?.isPassing) passing = refused
      else ids.add(one.id)
      if (refused?.isPassing === false) report('a push was not accepted', refused.failure)
    }
    for (let at = 0; at < wanted.length; at += sentAtOnce) {
      await Promise.all(wanted.slice(at, at + sentAtOnce).map(sendOne))
    }
    return passing
  }

  return {
    ...{ Rules: [], Owners: [], queues: queuesOfPush(host), isChat: true },
    send: (event, signal) => sendAll({ event, content: contentOf(event), signal }),
    sendMore: (event, count, signal) => sendAll({ event, content: { count }, signal }),
  }
}

const asPassing = (failure: unknown): NotAccepted => ({ failure, isPassing: true })

/** How long the push service keeps it for a browser that is off: no longer than the request waits. */
function secondsLeft({ data }: HitlEvent, now: number): number {
  const left = Math.floor((Date.parse(String(data['expiresAt'])) - now) / 1_000)
  return left > 0 ? Math.min(left, longestSeconds) : 0
}

/** The id is not shown: the link has it. */
export function contentOf({ hitlId, data }: HitlEvent): object {
  const shown = (value: unknown) => (typeof value === 'string' ? fit(plainText(value)) : undefined)
  return { agent: shown(data['agentName'] ?? data['agentId']), rule: shown(data['rule']), id: hitlId }
}
