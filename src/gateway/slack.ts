import type { Config } from '../config/schema.ts'
import type { Person } from '../hitl/model.ts'
import type { Queue } from '../hitl/queue.ts'
import type { Receiver } from '../hitl/receiver.ts'
import { createSlackCall } from '../hitl/slack/api.ts'
import { slackChannel } from '../hitl/slack/channel.ts'
import { SlackClicks } from '../hitl/slack/clicks.ts'
import { createLinkCodes } from '../hitl/slack/link.ts'
import type { RequestSight } from '../hitl/slack/request.ts'
import { SlackSocket } from '../hitl/slack/socket.ts'
import { createSlackCheck } from '../hitl/slack/verify.ts'
import type { SlackEntry } from '../management/parts.ts'
import { inTime } from '../runtime/clock.ts'
import type { OwnRequests } from '../upstream/own-requests.ts'
import { openOwnWebSocket } from '../upstream/own-web-socket.ts'
import { type Base, consoleUrlOf } from './base.ts'
import type { Identity } from './identity.ts'
import type { Rules } from './rules.ts'
import type { Upstreams } from './upstreams.ts'

export interface SlackParts extends Pick<Base, 'config' | 'clock' | 'store' | 'member' | 'report'> {
  readonly identity: Pick<Identity, 'registry'>
  readonly upstreams: Pick<Upstreams, 'ownRequests' | 'ca'>
  readonly rules: Pick<Rules, 'policies'>
  readonly queue: Pick<Queue, 'approve' | 'deny'>
  readonly reviewerOf: (id: string) => Person | undefined
  readonly takeCall: (personId: string) => number | Promise<number>
}

export interface Slack extends SlackEntry {
  readonly channels: readonly Receiver[]
  /** Call every second or so. */
  sweep(): Promise<void>
  /** Takes no clicks any more, and gives those under way a moment. */
  close(): Promise<void>
}

const lastClicksMs = 2_000
const nothing = () => {}

/** Undefined without a Slack app. */
export function openSlack(parts: SlackParts): Slack | undefined {
  const { config, clock, store, member, report, upstreams, reviewerOf } = parts
  const { Slack: settings } = config.HumanInTheLoop
  if (settings.BotToken === undefined) return undefined
  const { ask } = upstreams.ownRequests
  const callAs = (token: string) => createSlackCall({ apiUrl: settings.ApiUrl, token, ask })
  const call = callAs(settings.BotToken)
  const sight = sightOf(parts)
  const requests = { find: (id: string) => store.hitl.brief(id, clock.now()), messages: store.messages }
  const links = createLinkCodes({ team: settings.Team ?? '', store, clock, reviewerOf })
  const clicks = new SlackClicks({
    ...{ ...requests, settings, call, sight, links, reviewerOf, clock, report },
    ...{ queue: parts.queue, identities: store.identities, takeCall: parts.takeCall },
  })
  const take = (payload: unknown): boolean => clicks.take(payload)
  const socket =
    settings.AppToken === undefined
      ? undefined
      : new SlackSocket({
          ...{ call: callAs(settings.AppToken), deliveries: store.deliveries, owner: member.id, clock, report },
          connect: (url, handlers) => {
            const { connect } = upstreams.ownRequests
            return openOwnWebSocket({ connect, ca: upstreams.ca }, secureUrl(url, settings), handlers)
          },
          onPayload: take,
        })
  return {
    channels: settings.Channels.map(channel => slackChannel({ settings: channel, call, sight, requests, report })),
    ...{ links, take },
    isSlack: settings.SigningSecret === undefined ? undefined : createSlackCheck(settings.SigningSecret, clock),
    sweep: async () => socket?.sweep(),
    async close() {
      socket?.close()
      await inTime(clicks.idle(), lastClicksMs, nothing)
    },
  }
}

/** Slack says where to connect: in the clear only where its API is called in the clear, on this machine. */
function secureUrl(url: string, { ApiUrl }: Config['HumanInTheLoop']['Slack']): string {
  const isAllowed = /^wss:/i.test(url) || (/^ws:/i.test(url) && /^http:/i.test(ApiUrl))
  if (!isAllowed) throw new RangeError('Slack named no wss URL')
  return url
}

function sightOf({ config, identity, rules }: Pick<SlackParts, 'config' | 'identity' | 'rules'>): RequestSight {
  return {
    publicUrl: consoleUrlOf(config),
    verdicts: config.HumanInTheLoop.Slack.Verdicts,
    nameOf: id => identity.registry.get(id)?.name,
    isOpen: (policy, name) =>
      rules.policies.book
        .entry(policy ?? '')
        ?.document.rules.some(rule => rule.name === name && rule.effect === 'Hitl' && rule.chatApproval === true) ===
      true,
  }
}

/** The channels alone, for a message that is about no request. */
export function testChannels(config: Config, { ask }: Pick<OwnRequests, 'ask'>): readonly Receiver[] {
  const { BotToken: token, ApiUrl: apiUrl, Channels } = config.HumanInTheLoop.Slack
  if (token === undefined) return []
  const call = createSlackCall({ apiUrl, token, ask })
  const sight = {
    publicUrl: consoleUrlOf(config),
    verdicts: 'none',
    nameOf: () => undefined,
    isOpen: () => false,
  } as const
  return Channels.map(settings => slackChannel({ settings, call, sight, requests: undefined, report: nothing }))
}
