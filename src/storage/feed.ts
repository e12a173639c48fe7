/**
 * The change feed: snapshots of agents and policies in memory change by it alone, for the writes of this gateway too. So
 * they show every change in the order of the commits. Events of held requests come the same way.
 */
import type { AgentRecord } from './agents.ts'
import type { CredentialVersion } from './credentials.ts'
import type { EventHistory, EventNote, StoredEvent } from './events.ts'
import type { PolicyRecord } from './policies.ts'

/** What changed in a commit. */
export type StoreChange =
  | { readonly table: 'agents'; readonly key: string; readonly now: AgentRecord | undefined }
  | { readonly table: 'policies'; readonly key: string; readonly now: PolicyRecord | undefined }
  | { readonly table: 'credentials'; readonly key: string; readonly now: CredentialVersion | undefined }
  | { readonly table: 'tokens'; readonly key: 'epoch'; readonly now: string }
  | { readonly table: 'grants'; readonly key: string; readonly now: undefined }
  | { readonly table: 'events'; readonly key: string; readonly now: EventNote }

/** Whether a write that changes this is answered when it is in force. Nobody waits until an event was delivered. */
export const isAwaited = ({ table }: Pick<StoreChange, 'table'>): boolean => table !== 'events'

/** Calls come in the order of the commits, also while the promise of an earlier one is open. They must not throw. */
export interface FeedFollower<T, All = readonly T[]> {
  /** Everything as it is now: at first, and after changes may have been missed. In force when it resolves. */
  load(all: All): Promise<unknown> | undefined
  /** `undefined` when the row was removed. In force when it resolves. */
  change(key: string, now: T | undefined): Promise<unknown> | undefined
}

export interface Feed<T, All = readonly T[]> {
  /** Resolves once everything was loaded. Returns a function that ends it. */
  follow(follower: FeedFollower<T, All>): Promise<() => void>
}

export interface Feeds {
  readonly agents: Feed<AgentRecord>
  readonly policies: Feed<PolicyRecord>
  /** Credentials that are stored: which version. */
  readonly credentials: Feed<CredentialVersion>
  /** Grants that were withdrawn. When a follower is called to load, any of them may have been withdrawn. */
  readonly grants: Feed<never, undefined>
  /** Its followers need not have an event when the write that caused it is answered. */
  readonly events: Feed<StoredEvent, EventHistory>
  /** What the keys of tokens are derived with; nothing before tokens were made void for the first time. */
  readonly tokens: Feed<string>
}

/** The engine's ends of all feeds. */
export type Channels = {
  readonly [T in keyof Feeds]: Feeds[T] extends Feed<infer Value, infer All> ? Channel<Value, All> : never
}

/** A change as followers get it: events have their numbers. */
type PublishedChange = Pick<StoreChange, 'table' | 'key'> & { readonly now: unknown }

/** Tells the followers of its table. In force when it resolves; undefined when it is already. */
export function publish(
  channels: Channels,
  { table, key, now }: PublishedChange,
  number?: number,
): Promise<unknown> | undefined {
  // A change has a value of its table.
  return (channels[table] as Channel<unknown, never>).publish(key, now, number)
}

export function reloadAll(channels: Channels): Promise<unknown> {
  return Promise.all(Object.values(channels).map(channel => channel.reload()))
}

/**
 * Reads all rows; `seen` gets them in their place among the changes, or with the number of the last change that they show:
 * those up to it are not reported again.
 */
export type ReadAll<All> = (onAll: (all: All, upTo?: number) => void) => Promise<unknown>

/** The engine's end of a feed. */
export class Channel<T, All = readonly T[]> implements Feed<T, All> {
  /** Each with the number of the last change that it was loaded with. */
  readonly #followers = new Map<FeedFollower<T, All>, number>()
  readonly #readAll: ReadAll<All>

  constructor(readAll: ReadAll<All>) {
    this.#readAll = readAll
  }

  async follow(follower: FeedFollower<T, All>): Promise<() => void> {
    await this.#load(() => [follower])
    return () => this.#followers.delete(follower)
  }

  get isFollowed(): boolean {
    return this.#followers.size > 0
  }

  /** Changes may have been missed: shows everything as it is now. Changes before that are not reported: they are in it. */
  async reload(): Promise<void> {
    for (const follower of this.#followers.keys()) this.#followers.set(follower, Infinity)
    if (this.#followers.size > 0) await this.#load(() => [...this.#followers.keys()])
  }

  /** In force for every follower when it resolves; undefined when it is already. */
  publish(key: string, now: T | undefined, number = Infinity): Promise<unknown> | undefined {
    const waits = [...this.#followers]
      .filter(([, loaded]) => number > loaded)
      .map(([follower]) => follower.change(key, now))
      .filter(wait => wait !== undefined)
    return waits.length === 0 ? undefined : noted(Promise.all(waits))
  }

  async #load(whom: () => readonly FeedFollower<T, All>[]): Promise<void> {
    let loaded: Promise<unknown> | undefined
    await this.#readAll((all, upTo = -1) => {
      const followers = whom()
      for (const follower of followers) this.#followers.set(follower, upTo)
      loaded = noted(Promise.all(followers.map(follower => follower.load(all))))
    })
    await loaded
  }
}

/** The caller that gets its failure may have given up. */
function noted<T>(work: Promise<T>): Promise<T> {
  work.catch(() => undefined)
  return work
}
