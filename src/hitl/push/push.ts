/** Browsers of reviewers that get pushes. */
import { hash } from 'node:crypto'
import { matchesHost, parseHostPatterns } from '../../base/host.ts'
import { type Refusal, refuse } from '../../base/refusals.ts'
import type { AuditEntry } from '../../storage/store.ts'
import type { PushSubscription, SubscriptionTable } from '../../storage/subscriptions.ts'
import type { Receiver } from '../receiver.ts'
import { areBrowserKeys, type BrowserKeys } from './encrypt.ts'
import { contentOf, createSendPush, type PushParts, pushReceiver, type SendPush } from './receiver.ts'
import { openVapid, type Vapid, type VapidOptions } from './vapid.ts'

/** What `PushSubscription.toJSON()` of a browser has. */
export interface BrowserSubscription {
  readonly endpoint: string
  readonly keys: BrowserKeys
}

export interface PushOptions extends PushParts, Omit<VapidOptions, 'store'> {
  readonly store: SubscriptionTable
  /** Host patterns of push services. */
  readonly hosts: readonly string[]
}

export interface Push {
  readonly receivers: readonly Receiver[]
  publicKey(): Promise<string>
  /** Undefined once it is kept. */
  subscribe(agentId: string, asked: BrowserSubscription, by: Author): Promise<Refusal | undefined>
  /** False when the agent has no such subscription. */
  unsubscribe(agentId: string, id: string, by: Author): Promise<boolean>
  /** Sends a push about no request to each browser. */
  test(signal: AbortSignal): Promise<readonly TestedService[]>
}

/** What a push service did with test messages. */
export interface TestedService {
  readonly name: string
  /** Browsers whose push it took. */
  readonly accepted: number
  /** Why it took no more of them. */
  readonly failure: string | null
}

type Author = Pick<AuditEntry, 'actor' | 'requestId'>

/** Browsers of a person. Another one takes the place of the oldest. */
const maxEach = 5

export function createPush(options: PushOptions): Push {
  const { store, clock, hosts } = options
  const patterns = parseHostPatterns(hosts)
  /** A host that is in several patterns is of the first one: its browsers get each push once. */
  const serviceOf = (hostname: string): number => patterns.findIndex(pattern => matchesHost(pattern, hostname))
  let opening: Promise<Vapid> | undefined
  const vapid = (): Promise<Vapid> => {
    opening ??= openVapid(options).catch(error => {
      opening = undefined
      throw error
    })
    return opening
  }
  const entryOf = (by: Author, action: string, subject: string): AuditEntry => ({
    ...{ at: clock.now(), actor: by.actor, requestId: by.requestId, action, subject, details: {} },
  })
  const send = createSendPush(vapid, options)
  return {
    receivers: hosts.map((host, index) =>
      pushReceiver({ host, serves: name => serviceOf(name) === index }, send, options),
    ),
    publicKey: async () => (await vapid()).publicKey,
    async subscribe(agentId, { endpoint, keys }, by) {
      const url = URL.parse(endpoint)
      const isService = url?.protocol === 'https:' && url.port === '' && serviceOf(url.hostname) >= 0
      if (!isService)
        return refuse('invalid_body', 'The endpoint must be of a push service in HumanInTheLoop:Push:Hosts.')
      if (!areBrowserKeys(keys)) return refuse('invalid_body', 'The keys must be those of a browser.')
      const record = { id: idOf(url.href), agentId, endpoint: url.href, ...keys, createdAt: clock.now() }
      const kept = await store.keep(record, maxEach, entryOf(by, 'push.subscribe', agentId))
      return kept === 'stored' ? undefined : refuse('not_found')
    },
    async unsubscribe(agentId, id, by) {
      return store.remove(id, agentId, entryOf(by, 'push.unsubscribe', agentId))
    },
    async test(signal) {
      const message = { ...testMessage(clock.now()), signal }
      const byHost = Map.groupBy(await store.all(), ({ endpoint }) => new URL(endpoint).hostname)
      const known = [...byHost].filter(([name]) => serviceOf(name) >= 0)
      return Promise.all(known.map(([name, browsers]) => testService(name, browsers, one => send(one, message))))
    },
  }
}

async function testService(
  name: string,
  browsers: readonly PushSubscription[],
  send: (one: PushSubscription) => ReturnType<SendPush>,
): Promise<TestedService> {
  let accepted = 0
  for (const one of browsers) {
    const outcome = await send(one).catch((failure: unknown) => ({ failure }))
    if (outcome === 'accepted') accepted += 1
    else if (outcome !== 'dropped') return { name, accepted, failure: textOf(outcome.failure) }
  }
  return { name, accepted, failure: null }
}

const textOf = (failure: unknown): string => (failure instanceof Error ? failure.message : String(failure))

function testMessage(now: number) {
  const expiresAt = new Date(now + 60_000).toISOString()
  const data = { agentName: 'test', rule: 'A test message: nothing waits', expiresAt }
  const event = { id: 'test', type: 'pending', at: now, hitlId: null, data } as const
  return { event, content: contentOf(event) }
}

export const idOf = (endpoint: string): string => hash('sha256', endpoint, 'base64url')
