import { StartupError } from '../base/refusals.ts'
import type { Config } from '../config/schema.ts'
import { mailReceiver } from '../hitl/mail.ts'
import type { Post } from '../hitl/messages/message.ts'
import { createNotifier, type Notifier, type NotifierOptions } from '../hitl/notify.ts'
import { type Receiver, webhookReceiver } from '../hitl/receiver.ts'
import { inTime } from '../runtime/clock.ts'
import { webhookDeliveries } from '../telemetry/layout.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { OwnRequests } from '../upstream/own-requests.ts'
import { type Base, consoleUrlOf } from './base.ts'
import type { Telemetry } from './telemetry.ts'
import type { Upstreams } from './upstreams.ts'

export interface ReceiverParts extends Pick<Base, 'config' | 'clock' | 'store' | 'member' | 'report'> {
  readonly upstreams: Pick<Upstreams, 'ownRequests' | 'ca'>
  readonly telemetry: Pick<Telemetry, 'metrics'>
  readonly events: NotifierOptions['events']
  readonly describe: NotifierOptions['describe']
  readonly ownerOf: NotifierOptions['ownerOf']
}

export interface Receivers extends Pick<Notifier, 'sweep'> {
  /** Gives the receivers a moment for the last events, and closes them. */
  finish(): Promise<void>
}

const lastEventsMs = 2_000
const closeMs = 1_000
const nothing = () => {}

/** @throws StartupError when the destination of one is refused */
export function openReceivers(parts: ReceiverParts): Receivers {
  const { clock, store, member, events, describe, ownerOf, report } = parts
  const notifier = createNotifier({
    ...{ receivers: openAll(parts), store, events, clock, describe, ownerOf, report },
    find: id => store.hitl.brief(id, clock.now()),
    owner: member.id,
  })
  // Messages that an earlier run or another gateway left are sent at once.
  notifier.sweep().catch(error => report('messages that wait could not be read', error))
  return {
    sweep: () => notifier.sweep(),
    async finish() {
      await inTime(notifier.idle(), lastEventsMs, nothing)
      await inTime(notifier.close(), closeMs, nothing)
    },
  }
}

function openAll({ upstreams, telemetry, ...parts }: ReceiverParts): readonly Receiver[] {
  checkHooks(parts.config.HumanInTheLoop.Webhooks, upstreams.ownRequests)
  return receiversOf({ ...parts, upstreams, post: countedPost(upstreams.ownRequests.post, telemetry.metrics) })
}

interface ReceiverList extends Pick<ReceiverParts, 'config' | 'clock' | 'upstreams'> {
  readonly post: Post
}

/** The webhooks in their order, and e-mail if it is set. */
export function receiversOf({ config, clock, upstreams, post }: ReceiverList): readonly Receiver[] {
  const { Webhooks, Email } = config.HumanInTheLoop
  const { ownRequests, ca } = upstreams
  const options = { clock, publicUrl: consoleUrlOf(config) }
  const receivers = Webhooks.map((hook, index) => webhookReceiver(hook, { index, post, ...options }))
  if (Email.Host === undefined) return receivers
  return [...receivers, mailReceiver({ settings: Email, connect: ownRequests.connect, ca, ...options })]
}

function countedPost(post: Post, metrics: Metrics): Post {
  return async (...message) => {
    try {
      const status = await post(...message)
      metrics.count(webhookDeliveries, status >= 200 && status < 300 ? 'accepted' : 'rejected')
      return status
    } catch (error) {
      metrics.count(webhookDeliveries, 'failed')
      throw error
    }
  }
}

/**
 * Reports refused destinations at the start, before a message fails.
 *
 * @throws StartupError with a line for each webhook whose destination is refused
 */
export function checkHooks(hooks: Config['HumanInTheLoop']['Webhooks'], { check }: Pick<OwnRequests, 'check'>): void {
  const problems = hooks.flatMap(({ Url }, index) =>
    Url !== undefined && check(Url) !== undefined
      ? [`HumanInTheLoop:Webhooks[${index}]:Url: Egress refuses this destination. Allow it there, or take another.`]
      : [],
  )
  if (problems.length > 0) throw new StartupError(problems.join('\n'))
}
