import { bindable } from '../chain.ts'
import type { WebhookSubscription } from '../deliveries.ts'
import type { Db } from '../schema.ts'
import { StoreError } from '../store-error.ts'
import { type HeldTotals, sumOf, WriteNotes } from '../unit.ts'
import { schemaLock } from './commit-write.ts'

/** Sends a statement. */
export type NoteQuery = (
  text: string,
  values?: readonly unknown[],
) => Promise<{ readonly command: string; readonly rows: unknown[] }>

/** In the order of the locks, so that no two transactions wait for each other. */
const locksOf = `(select distinct hashtextextended(key, ${schemaLock}) as lock
  from unnest($1::text[]) as k(key) order by lock) as locks`
const lockKeys = `select pg_advisory_xact_lock(lock) from ${locksOf}`
const tryKeys = `select coalesce(bool_and(pg_try_advisory_xact_lock(lock)), true) as held from ${locksOf}`

/** What all operations of one transaction have in common. */
export interface Together {
  readonly db: Db
  readonly query: NoteQuery
  readonly gateway: string
  /** By locked key, the queue of operations that holds it; undefined when the transaction has one operation. */
  readonly taken: Map<string, string> | undefined
  readonly all: readonly WriteNotes[]
  readonly subscriptions: readonly WebhookSubscription[]
}

/** A unit of work beside those of other connections and gateways, and maybe others in the same transaction. */
export class SharedNotes extends WriteNotes {
  readonly #together: Together
  readonly #queue: string
  #isLeftOut = false

  /** @param queue operations of one line run one after the other */
  constructor(together: Together, queue: string) {
    super(together.db, together.subscriptions, together.gateway)
    this.#together = together
    this.#queue = queue
  }

  /** The operation has changed nothing, and must be done in a transaction of its own. */
  get isLeftOut(): boolean {
    return this.#isLeftOut
  }

  /** Without others in the transaction: the next statement begins, and sees the tables, when the locks are held. */
  override alone(...given: readonly string[]): Promise<void> | undefined {
    const { query, taken } = this.#together
    // The array of a parameter is not looked into any more.
    const keys = given.map(key => String(bindable(key)))
    if (taken !== undefined) return this.#takeAll(keys, taken)
    this.send(query(lockKeys, [keys]))
    return undefined
  }

  /** Others must not wait with it. Locks do not keep out those of the same transaction. */
  async #takeAll(keys: readonly string[], taken: Map<string, string>): Promise<void> {
    if (keys.some(key => (taken.get(key) ?? this.#queue) !== this.#queue)) this.#leaveOut()
    for (const key of keys) taken.set(key, this.#queue)
    const { rows } = await this.#together.query(tryKeys, [keys])
    // The one column of the one row.
    if (!(rows as { held: boolean }[])[0]?.held) this.#leaveOut()
  }

  override async tryAlone(key: string): Promise<boolean> {
    const { rows } = await this.#together.query(tryKeys, [[key]])
    // The one column of the one row.
    return (rows as { held: boolean }[])[0]?.held === true
  }

  override mayFail(): void {
    if (this.#together.taken !== undefined) this.#leaveOut()
  }

  override counted(agentId?: string): HeldTotals {
    return sumOf(this.#together.all.map(notes => notes.countedHere(agentId)))
  }

  #leaveOut(): never {
    this.#isLeftOut = true
    throw new StoreError('not together with others')
  }
}
