/** Browsers of reviewers that get pushes. */
import { hash } from 'node:crypto'
import { matchesAnyHost, parseHostPatterns } from '../../base/host.ts'
import { type Refusal, refuse } from '../../base/refusals.ts'
import type { AuditEntry } from '../../storage/store.ts'
import type { SubscriptionTable } from '../../storage/subscriptions.ts'
import type { Receiver } from '../receiver.ts'
import { areBrowserKeys, type BrowserKeys } from './encrypt.ts'
import { type PushParts, pushReceiver } from './receiver.ts'
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
  /** The key with which browsers subscribe. */
  publicKey(): Promise<string>
  /** Undefined once it is kept. */
  subscribe(agentId: string, asked: BrowserSubscription, by: Author): Promise<Refusal | undefined>
  /** False when the agent has no such subscription. */
  unsubscribe(agentId: string, id: string, by: Author): Promise<boolean>
}

type Author = Pick<AuditEntry, 'actor' | 'requestId'>

/** Browsers of a person. Another one takes the place of the oldest. */
const maxEach = 5
export function createPush(options: PushOptions): Push {
  const { store, clock, hosts } = options
  const patterns = parseHostPatterns(hosts)
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
  return {
    receivers: hosts.map(host => pushReceiver(host, vapid, options)),
    publicKey: async () => (await vapid()).publicKey,
    async subscribe(agentId, { endpoint, keys }, by) {
      const url = URL.parse(endpoint)
      const isService = url?.protocol === 'https:' && url.port === '' && matchesAnyHost(patterns, url.hostname)
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
  }
}

export const idOf = (endpoint: string): string => hash('sha256', endpoint, 'base64url')
