import { StartupError } from '../base/refusals.ts'
import type { Config } from '../config/schema.ts'
import { createNotifier, type Notifier, type NotifierOptions } from '../hitl/notify.ts'
import { inTime } from '../runtime/clock.ts'
import { webhookDeliveries } from '../telemetry/layout.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { OwnRequests } from '../upstream/own-requests.ts'
import { type Base, consoleUrlOf } from './base.ts'
import type { Telemetry } from './telemetry.ts'
import type { Upstreams } from './upstreams.ts'

export interface WebhookParts extends Pick<Base, 'config' | 'clock' | 'store' | 'member' | 'report'> {
  readonly upstreams: Pick<Upstreams, 'ownRequests'>
  readonly telemetry: Pick<Telemetry, 'metrics'>
  readonly events: NotifierOptions['events']
  readonly describe: NotifierOptions['describe']
  readonly ownerOf: NotifierOptions['ownerOf']
}

export interface Webhooks extends Pick<Notifier, 'sweep'> {
  /** Gives the webhooks a moment for the last events, and closes them. */
  finish(): Promise<void>
}

const lastEventsMs = 2_000
const closeMs = 1_000
const nothing = () => {}

/** @throws StartupError when the destination of one is refused */
export function openWebhooks(parts: WebhookParts): Webhooks {
  const { config, clock, store, member, events, describe, ownerOf, report } = parts
  const { ownRequests } = parts.upstreams
  const hooks = config.HumanInTheLoop.Webhooks
  checkHooks(hooks, ownRequests)
  const notifier = createNotifier({
    ...{ hooks, store, events, clock, describe, ownerOf, report },
    find: id => store.hitl.brief(id, clock.now()),
    ...{
      owner: member.id,
      post: countedPost(ownRequests.post, parts.telemetry.metrics),
      publicUrl: consoleUrlOf(config),
    },
  })
  // Messages that an earlier run or another gateway left are sent at once.
  notifier.sweep().catch(error => report('messages for webhooks could not be read', error))
  return {
    sweep: () => notifier.sweep(),
    async finish() {
      await inTime(notifier.idle(), lastEventsMs, nothing)
      await inTime(notifier.close(), closeMs, nothing)
    },
  }
}

function countedPost(post: NotifierOptions['post'], metrics: Metrics): NotifierOptions['post'] {
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
