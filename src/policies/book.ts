/** Every policy in force, and how those of the store come into force. */
import type { Refusal } from '../base/refusals.ts'
import { createSerialQueue } from '../runtime/serial-queue.ts'
import type { PolicyRecord, Store } from '../storage/store.ts'
import { createActivePolicies } from './active-policies.ts'
import { createPolicy, type EditParts, type PolicyEditor, prepareEdit, removePolicy, replacePolicy } from './edit.ts'
import { type PolicyEntry, type PolicyInput, type PreparedSet, prepareInput, type StoredEntry } from './entry.ts'
import { type PolicyPush, pushPolicies } from './push.ts'

export interface BookOptions extends Omit<EditParts, 'active' | 'known' | 'store'>, Pick<StoredParts, 'onUnreadable'> {
  readonly store: Pick<Store, 'policies' | 'feed'>
  /** Runs the tests of policies before they are put in force. Returns a line for each failure. */
  readonly selfTest?: (entries: ReadonlyMap<string, PolicyEntry>) => Promise<readonly string[]>
  /** Called with the policies in force after each change, which is answered only when this is done. */
  readonly onChange?: ((list: readonly PolicyEntry[]) => Promise<void>) | undefined
}

/**
 * Every policy in force, compiled, by name. Those of the API change by the feed of the store alone. Methods that store
 * something reject with StoreError when the store fails; then nothing was changed.
 */
export type PolicyBook = ReturnType<typeof createBook>

export function createBook(options: BookOptions) {
  const active = createActivePolicies()
  const parts = { ...options, active, known: new Map<string, PolicyEntry>() }
  const stored = followStored(parts)
  const edits = createSerialQueue()
  /** A queue of its own: an edit ends only when its change was put in force here. */
  const puts = createSerialQueue()

  function put<T>(work: () => Promise<T>): Promise<T> {
    return puts(async () => {
      const before = active.list
      const done = await work()
      if (active.list !== before) await options.onChange?.(active.list)
      return done
    })
  }

  async function load({ entries, lines }: PreparedSet): Promise<readonly string[]> {
    const all = lines.length > 0 ? lines : ((await options.selfTest?.(entries)) ?? [])
    if (all.length === 0) active.put({ fixed: entries })
    return all
  }

  return {
    /** The policies in force. `list`, sorted by name, is the same array as long as nothing changes. */
    active,
    /** For the decision: one lookup. */
    get: (name: string) => active.inForce.get(name)?.compiled,
    entry: (name: string) => active.inForce.get(name),
    list: (): readonly PolicyEntry[] => active.list,
    /**
     * Refusals: invalid_policy, already_exists. When it is repeatable, the policy that was made over the API and says the same is
     * the result.
     */
    create: (document: unknown, by: PolicyEditor, isRepeatable = false) =>
      edits(() => createPolicy(parts, document, by, isRepeatable)),
    /** Checks a document as `create` does, and stores nothing. Refusals: invalid_policy. */
    check: (document: unknown) => prepareEdit(parts, document, options.clock.now()),
    /** Several in one commit. Refusals: invalid_policy, read_only, in_use. */
    push: (push: PolicyPush, by: PolicyEditor) => edits(() => pushPolicies(parts, push, by)),
    /** Refusals: invalid_policy, not_found, read_only. */
    replace: (name: string, document: object, by: PolicyEditor) =>
      edits(() => replacePolicy(parts, name, document, by)),
    /** Refusals: not_found, read_only, in_use. */
    remove: (name: string, by: PolicyEditor): Promise<{ readonly removed: string } | Refusal> =>
      edits(() => removePolicy(parts, name, by)),
    /**
     * Puts these in the place of all policies that are not of the API, if there is no mistake among them.
     *
     * @returns a line for each mistake; when there is any, nothing was changed
     */
    load: (set: PreparedSet) => put(() => load(set)),
    /** Puts the policies of the API in force, now and whenever they change. Returns a function that ends it. */
    follow: () =>
      options.store.feed.policies.follow({
        load: records => put(() => stored.load(records)),
        change: (name, record) => put(() => stored.change(name, record)),
      }),
  }
}

export interface StoredParts extends Pick<EditParts, 'language' | 'active' | 'known'> {
  /** Called with a line for each policy of the API that this version does not understand; it is left out, and so denies. */
  readonly onUnreadable?: (lines: readonly string[]) => void
}

/** Puts policies of the API in force as the store has them. Call one at a time. */
function followStored({ language, active, known, onUnreadable }: StoredParts) {
  async function read(record: PolicyRecord): Promise<StoredEntry | undefined> {
    const { document: stored, createdAt } = record
    const entry = known.get(stored)
    if (entry !== undefined) return { ...entry, createdAt, stored }
    const prepared = await prepareInput(language, inputOf(record))
    if ('entry' in prepared) return { ...prepared.entry, stored }
    onUnreadable?.(prepared.lines)
    return undefined
  }

  return {
    async load(records: readonly PolicyRecord[]): Promise<void> {
      const editable = new Map<string, StoredEntry>()
      for (const record of records) {
        const entry = await read(record)
        if (entry !== undefined) editable.set(record.name, entry)
      }
      active.put({ editable })
    },
    async change(name: string, record: PolicyRecord | undefined): Promise<void> {
      const entry = record && (await read(record))
      const editable = new Map(active.editable)
      if (entry === undefined) editable.delete(name)
      else editable.set(name, entry)
      active.put({ editable })
    },
  }
}

function inputOf({ name, document, createdAt }: PolicyRecord): PolicyInput {
  return {
    source: 'api',
    document: JSON.parse(document),
    createdAt,
    where: () => `policy ${name} of the API`,
  }
}
