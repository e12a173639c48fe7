import { isDeepStrictEqual } from 'node:util'
import { normaliseHost } from '../base/host.ts'
import { createOrigin, type Origin } from '../base/origin.ts'
import { StartupError } from '../base/refusals.ts'
import type { Config } from '../config/schema.ts'
import { mailReceiver } from '../hitl/mail.ts'
import type { Post } from '../hitl/messages/message.ts'
import { createNotifier, type Notifier, type NotifierOptions } from '../hitl/notify.ts'
import { type Receiver, subscriptionsOf, webhookReceiver } from '../hitl/receiver.ts'
import { inTime } from '../runtime/clock.ts'
import { webhookDeliveries } from '../telemetry/layout.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createEgress } from '../upstream/egress.ts'
import { destinationOf } from '../upstream/own-requests.ts'
import { type Base, consoleUrlOf } from './base.ts'
import type { Telemetry } from './telemetry.ts'
import { egressOf, type Upstreams } from './upstreams.ts'

export interface ReceiverParts extends Pick<Base, 'config' | 'onSettings' | 'clock' | 'store' | 'member' | 'report'> {
  readonly upstreams: Pick<Upstreams, 'ownRequests' | 'ca'>
  readonly telemetry: Pick<Telemetry, 'metrics'>
  readonly events: NotifierOptions['events']
  readonly describe: NotifierOptions['describe']
  readonly ownerOf: NotifierOptions['ownerOf']
  /** The channels of the Slack app, and push services. */
  readonly others: readonly Receiver[]
}

export interface Receivers extends Pick<Notifier, 'sweep'> {
  /** Gives the receivers a moment for the last events, and closes them. */
  finish(): Promise<void>
}

const lastEventsMs = 2_000
const closeMs = 1_000
/** TLS begins at once on it. */
const smtpsPort = 465
const nothing = () => {}

/** @throws StartupError when the destination of one is refused */
export function openReceivers(parts: ReceiverParts): Receivers {
  const { clock, store, member, events, describe, ownerOf, report, config } = parts
  const open = (): Notifier =>
    createNotifier({
      ...{ receivers: openAll(parts), store, events, clock, describe, ownerOf, report },
      find: id => store.hitl.brief(id, clock.now()),
      owner: member.id,
    })
  // Messages that an earlier run or another gateway left are sent at once.
  const begin = () => notifier.sweep().catch(error => report('messages that wait could not be read', error))
  let notifier = open()
  let begun = begin()
  parts.onSettings(next => {
    checkReceivers(next)
    if (isDeepStrictEqual(receiverSettings(config), receiverSettings(next))) return () => {}
    return () => {
      store.subscribe(subscriptionsOf(config.HumanInTheLoop)).catch(error => report('webhooks were not changed', error))
      // The one before gives its leases back first. What comes meanwhile waits in the store.
      begun = begun
        .then(() => notifier.close())
        .then(() => {
          notifier = open()
          return begin()
        })
    }
  })
  return {
    sweep: () => notifier.sweep(),
    async finish() {
      await inTime(begun, lastEventsMs, nothing)
      await inTime(notifier.idle(), lastEventsMs, nothing)
      await inTime(notifier.close(), closeMs, nothing)
    },
  }
}

function openAll({ upstreams, telemetry, ...parts }: ReceiverParts): readonly Receiver[] {
  checkReceivers(parts.config)
  return receiversOf({ ...parts, upstreams, post: countedPost(upstreams.ownRequests.post, telemetry.metrics) })
}

const receiverSettings = ({ HumanInTheLoop: { Webhooks, Email } }: Config) => ({ Webhooks, Email: { ...Email } })

interface ReceiverList extends Pick<ReceiverParts, 'config' | 'clock' | 'upstreams' | 'others'> {
  readonly post: Post
}

/** The webhooks in their order, e-mail if it is set, and the others. */
export function receiversOf({ config, clock, upstreams, post, others }: ReceiverList): readonly Receiver[] {
  const { Webhooks, Email } = config.HumanInTheLoop
  const { ownRequests, ca } = upstreams
  const options = { clock, publicUrl: consoleUrlOf(config) }
  const { connect } = ownRequests
  return [
    ...Webhooks.map((hook, index) => webhookReceiver(hook, { index, post, ...options })),
    ...(Email.Host === undefined ? [] : [mailReceiver({ settings: Email, connect, ca, ...options })]),
    ...others,
  ]
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
 * @throws StartupError with a line for each setting whose destination is refused
 */
export function checkReceivers(config: Config): void {
  const egress = createEgress(egressOf(config, {}))
  const isRefused = (origin: Origin): boolean => {
    const { address } = origin
    return (egress.checkHost(origin) ?? (address && egress.checkAddresses(origin, [address]))) !== undefined
  }
  const problems = destinationsOf(config.HumanInTheLoop).flatMap(({ setting, origin }) =>
    isRefused(origin)
      ? [`HumanInTheLoop:${setting}: Egress refuses this destination. Allow it there, or take another.`]
      : [],
  )
  if (problems.length > 0) throw new StartupError(problems.join('\n'))
}

export interface ReceiverDestination {
  readonly setting: string
  /** For people: URLs of webhooks often hold a key. */
  readonly name: string
  readonly origin: Origin
}

/** Where messages are sent, as far as the settings name one host. */
export function destinationsOf({
  Webhooks,
  Email,
  Slack,
  Push,
}: Config['HumanInTheLoop']): readonly ReceiverDestination[] {
  const of = (setting: string, name: string, url: string) => ({ setting, name, ...destinationOf(new URL(url)) })
  const pushHosts = Push.Enabled ? Push.Hosts.filter(host => !/^[*.]/.test(host)) : []
  const { Host, Port } = Email
  const mail = Host && createOrigin(Port === smtpsPort ? 'https' : 'http', normaliseHost(Host) ?? Host, Port)
  return [
    ...Webhooks.flatMap(({ Url }, n) => (Url === undefined ? [] : of(`Webhooks[${n}]:Url`, `webhook ${n}`, Url))),
    ...(mail ? [{ setting: 'Email:Host', name: 'e-mail', origin: mail }] : []),
    ...(Slack.BotToken === undefined ? [] : [of('Slack:ApiUrl', 'Slack', Slack.ApiUrl)]),
    ...pushHosts.map(host => of('Push:Hosts', `push service ${host}`, `https://${host}`)),
  ]
}
