/**
 * Presses of buttons, and forms, in Slack. Each is of a person whose account an admin or the person has bound. The verdict is
 * given as that person, bound to the digest that was shown; what Slack tells of a name, an address or a channel proves nothing.
 */
import { isObject } from '../../base/records.ts'
import { isRefusal, type Refusal } from '../../base/refusals.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { IdentityTable } from '../../storage/identities.ts'
import { stateOf } from '../../storage/messages.ts'
import type { HitlBrief } from '../../storage/store.ts'
import { plain, section, slackContent } from '../messages/slack.ts'
import type { Person, Verdict } from '../model.ts'
import type { Queue } from '../queue.ts'
import type { SlackSettings } from '../receiver.ts'
import { parse, type SlackCall, textAt } from './api.ts'
import type { KeptRequests } from './channel.ts'
import type { LinkCodes } from './link.ts'
import { createPace } from './pace.ts'
import {
  type FormSubject,
  linkForm,
  noticeOfRequest,
  type RequestSight,
  shownOf,
  verdictForm,
  verdictsOn,
} from './request.ts'

export interface ClickParts extends KeptRequests {
  readonly settings: SlackSettings
  readonly call: SlackCall
  readonly sight: RequestSight
  readonly queue: Pick<Queue, 'approve' | 'deny'>
  readonly identities: Pick<IdentityTable, 'holder'>
  readonly links: LinkCodes
  /** The agent of that id if it may decide requests now. */
  readonly reviewerOf: (id: string) => Person | undefined
  /** Takes one call of a person by the rate of the management API: 0, or the milliseconds to wait. */
  readonly takeCall: (personId: string) => number | Promise<number>
  readonly clock: Pick<Clock, 'steady'>
  readonly report: (what: string, error: unknown) => void
}

/** Who pressed, and where the answer goes. */
interface Clicker {
  readonly user: string
  readonly channel: string
}

/** Clicks of one account in a minute, before anything is looked up. */
const clicksPerMinute = 30
/** Clicks at the same time; Slack repeats those that are not taken. */
const maxAtOnce = 50

export class SlackClicks {
  readonly #parts: ClickParts
  readonly #takeClick: ReturnType<typeof createPace>
  readonly #underWay = new Set<Promise<void>>()

  constructor(parts: ClickParts) {
    this.#parts = parts
    this.#takeClick = createPace(parts.clock, clicksPerMinute)
  }

  /**
   * Takes a payload that Slack has sent and that was proven to be Slack's. Returns at once: Slack waits three seconds at most.
   * False: there are too many.
   */
  take(payload: unknown): boolean {
    if (this.#underWay.size >= maxAtOnce) return false
    const work = this.#handle(payload)
      .catch(error => this.#parts.report('a click in Slack could not be handled', error))
      .finally(() => this.#underWay.delete(work))
    this.#underWay.add(work)
    return true
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  async #handle(payload: unknown): Promise<void> {
    const { settings } = this.#parts
    const user = textAt(payload, 'user', 'id')
    const isForm = textAt(payload, 'type') === 'view_submission'
    const form = parse(textAt(payload, 'view', 'private_metadata'))
    const channel = isForm ? textAt(form, 'channel') : textAt(payload, 'channel', 'id')
    if (textAt(payload, 'team', 'id') !== settings.Team || !settings.Channels.some(({ Id }) => Id === channel)) return
    if (user === '' || !this.#takeClick(user)) return
    const clicker = { user, channel }
    const said = isForm ? await this.#submitted(payload, form, clicker) : await this.#pressed(payload, clicker)
    if (said !== undefined) await this.#answer(clicker, said)
  }

  /** A button: opens a form. Nothing is decided by one press. */
  async #pressed(payload: unknown, clicker: Clicker): Promise<string | undefined> {
    const actions = isObject(payload) ? payload['actions'] : undefined
    const action = Array.isArray(actions) ? actions[0] : undefined
    const verdict = textAt(action, 'action_id')
    const triggerId = textAt(payload, 'trigger_id')
    if (verdict === 'link') {
      const { refused } = await this.#parts.call('views.open', {
        trigger_id: triggerId,
        view: linkForm(clicker.channel),
      })
      return refused && formFailed
    }
    if (verdict !== 'approve' && verdict !== 'deny') return undefined
    const [id = '', digest = ''] = textAt(action, 'value').split(' ')
    const message = textAt(payload, 'message', 'ts')
    const subject: FormSubject = { id, digest, verdict, channel: clicker.channel, message }
    await this.#adopt(subject)
    const allowed = await this.#allowed(subject, clicker)
    if (typeof allowed === 'string') return allowed
    const view = verdictForm(allowed.item, subject, this.#parts.sight)
    const { refused } = await this.#parts.call('views.open', { trigger_id: triggerId, view })
    return refused && formFailed
  }

  async #submitted(
    payload: unknown,
    form: Readonly<Record<string, unknown>>,
    clicker: Clicker,
  ): Promise<string | undefined> {
    const given = (block: string) => textAt(payload, 'view', 'state', 'values', block, 'text', 'value')
    if (textAt(payload, 'view', 'callback_id') === 'link') return this.#parts.links.redeem(given('code'), clicker.user)
    const verdict = textAt(form, 'verdict')
    if (verdict !== 'approve' && verdict !== 'deny') return undefined
    const [id, digest, message] = [textAt(form, 'id'), textAt(form, 'digest'), textAt(form, 'message')]
    const subject: FormSubject = { id, digest, verdict, channel: clicker.channel, message }
    // All of it again: minutes may have passed since the form was opened.
    const allowed = await this.#allowed(subject, clicker)
    if (typeof allowed === 'string') return allowed
    const comment = given('comment')
    return this.#decide(subject, {
      reviewer: allowed.person,
      ...{ comment: comment === '' ? null : comment, requestId: null, digests: [digest] },
      origin: { via: 'slack', user: clicker.user, channel: clicker.channel, message },
    })
  }

  async #decide({ id, verdict: kind }: FormSubject, verdict: Verdict): Promise<string | undefined> {
    const { queue } = this.#parts
    if (kind === 'deny') return sayRefusal(await queue.deny(id, verdict))
    const approved = await queue.approve(id, verdict)
    // The answer is kept for the agent in any case.
    if (!isRefusal(approved) && approved.kind === 'answered') approved.body.destroy()
    return sayRefusal(approved)
  }

  /** The person and the request, or why this person may not decide it here. */
  async #allowed(
    { id, digest, verdict }: FormSubject,
    clicker: Clicker,
  ): Promise<{ readonly person: Person; readonly item: HitlBrief } | string> {
    const { find, sight } = this.#parts
    const person = await this.#personOf(clicker)
    if (typeof person === 'string') return person
    const item = await find(id)
    if (item === undefined) return 'This request is over.'
    if (item.status !== 'Pending') return `This request was decided already: ${item.status}.`
    if (item.digest !== digest) return 'This is another request than the message shows. Open it in the console.'
    if (verdictsOn(item, sight).includes(verdict)) return { person, item }
    return 'This verdict is given in the console alone. Press Open.'
  }

  async #personOf({ user }: Clicker): Promise<Person | string> {
    const { settings, identities, reviewerOf, takeCall } = this.#parts
    const team = settings.Team ?? ''
    const holder = await identities.holder({ provider: 'slack', team, user })
    if (holder === undefined) return notLinked
    if ((await takeCall(holder)) > 0) return 'Too many calls. Wait a minute.'
    const problem = await this.#memberProblem(user, team)
    if (problem !== undefined) return problem
    // Asked last: rights may have changed during the waits.
    return reviewerOf(holder) ?? 'Your account may not decide requests.'
  }

  /** Guests, members of other workspaces and accounts that were closed decide nothing. */
  async #memberProblem(user: string, team: string): Promise<string | undefined> {
    const { refused, body } = await this.#parts.call('users.info', { user })
    const found = body['user']
    if (refused !== undefined || typeof found !== 'object' || found === null) return 'Slack does not say who you are.'
    const isBarred = barring.some(name => Reflect.get(found, name) === true)
    return isBarred || textAt(found, 'id') !== user || textAt(found, 'team_id') !== team ? notMember : undefined
  }

  /** A message whose receipt was lost is known from now on, and is edited as the others are. */
  async #adopt({ id, channel, message }: FormSubject): Promise<void> {
    const { find, messages, sight } = this.#parts
    const item = message === '' ? undefined : await find(id)
    if (item === undefined) return
    const state = stateOf({ status: 'Pending', replay: null })
    const shown = shownOf(noticeOfRequest(item, sight))
    await messages.keep({ channel, reference: message, hitlId: id, state, shown })
  }

  /** Only the one who pressed sees it. */
  async #answer({ user, channel }: Clicker, said: string): Promise<void> {
    const link = { type: 'button', action_id: 'link', text: plain('Link my account') }
    const blocks = [section(said), ...(said === notLinked ? [{ type: 'actions', elements: [link] }] : [])]
    const { text } = slackContent({ headline: said, facts: [] })
    await this.#parts.call('chat.postEphemeral', { channel, user, text, blocks })
  }
}

const notLinked = 'This account is not linked to a reviewer of the gateway.'
const notMember = 'Guests and members of other workspaces decide nothing.'
const formFailed = 'Slack did not open the form. Press the button again.'
/** Members of `users.info` that bar an account when they are true. */
const barring = ['deleted', 'is_bot', 'is_restricted', 'is_ultra_restricted', 'is_stranger']

/** What the clicker is told of a refusal: its detail is safe to show to anyone. */
const sayRefusal = (outcome: object | Refusal): string | undefined => (isRefusal(outcome) ? outcome.detail : undefined)
