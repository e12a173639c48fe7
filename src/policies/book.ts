import type { Refusal } from '../errors.ts'
import type { CompiledPolicy } from '../policy/evaluation/compile.ts'
import { createPolicy, type EditParts, type PolicyEditor, removePolicy, replacePolicy } from './edit.ts'
import { type PolicyEntry, type PolicyInput, type PreparedSet, prepareSet } from './entry.ts'
import { createShelf } from './shelf.ts'

export interface BookOptions extends Omit<EditParts, 'shelf'> {
  /** Runs the tests of policies before they are put in force. Returns a line for each failure. */
  readonly selfTest?: (entries: ReadonlyMap<string, PolicyEntry>) => Promise<readonly string[]>
  /** Called with the policies in force after each change, which is answered only when this is done. */
  readonly onChange?: (list: readonly PolicyEntry[]) => Promise<void>
}

/**
 * Every policy in force, compiled, by name. Changes are made one at a time. Methods that store something reject with
 * StoreError when the store fails; then nothing was changed.
 */
export interface PolicyBook {
  /** For the decision: one lookup. */
  get(name: string): CompiledPolicy | undefined
  entry(name: string): PolicyEntry | undefined
  /** By name. The same array as long as nothing changes. */
  list(): readonly PolicyEntry[]
  /** Refusals: invalid_policy, already_exists. */
  create(document: unknown, by: PolicyEditor): Promise<PolicyEntry | Refusal>
  /** Refusals: invalid_policy, not_found, read_only. */
  replace(name: string, document: object, by: PolicyEditor): Promise<PolicyEntry | Refusal>
  /** Refusals: not_found, read_only, in_use. */
  remove(name: string, by: PolicyEditor): Promise<{ readonly removed: string } | Refusal>
  /**
   * Puts these in the place of all policies that are not of the API, if there is no mistake among them.
   *
   * @returns a line for each mistake; when there is any, nothing was changed
   */
  load(set: PreparedSet): Promise<readonly string[]>
  /**
   * Reads the policies that were made over the API.
   *
   * @returns a line for each that this version does not understand; it is left out, and so denies
   */
  restore(): Promise<readonly string[]>
}

export function createBook(options: BookOptions): PolicyBook {
  const shelf = createShelf()
  const parts = { ...options, shelf }
  let queue: Promise<unknown> = Promise.resolve()

  async function tell<T>(work: () => Promise<T>): Promise<T> {
    const before = shelf.list
    const done = await work()
    if (shelf.list !== before) await options.onChange?.(shelf.list)
    return done
  }

  function oneAtATime<T>(work: () => Promise<T>): Promise<T> {
    const result = queue.then(() => tell(work))
    // The caller gets the error of a failed change; the next change is made anyway.
    queue = result.catch(() => {})
    return result
  }

  async function load({ entries, lines }: PreparedSet): Promise<readonly string[]> {
    const all = lines.length > 0 ? lines : ((await options.selfTest?.(entries)) ?? [])
    if (all.length === 0) shelf.put({ fixed: entries })
    return all
  }

  async function restore(): Promise<readonly string[]> {
    const records = await options.store.policies.all()
    const inputs = records.map(
      ({ name, document, createdAt }): PolicyInput => ({
        source: 'api',
        document: JSON.parse(document),
        createdAt,
        where: () => `policy ${name} of the API`,
      }),
    )
    const { entries, lines } = await prepareSet(options.language, inputs)
    shelf.put({ editable: entries })
    return lines
  }

  return {
    get: name => shelf.inForce.get(name)?.compiled,
    entry: name => shelf.inForce.get(name),
    list: () => shelf.list,
    create: (document, by) => oneAtATime(() => createPolicy(parts, document, by)),
    replace: (name, document, by) => oneAtATime(() => replacePolicy(parts, name, document, by)),
    remove: (name, by) => oneAtATime(() => removePolicy(parts, name, by)),
    load: set => oneAtATime(() => load(set)),
    restore: () => oneAtATime(restore),
  }
}
