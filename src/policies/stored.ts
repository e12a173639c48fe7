import type { PolicyRecord } from '../storage/store.ts'
import type { EditParts } from './edit.ts'
import { type PolicyEntry, type PolicyInput, prepareInput } from './entry.ts'

export interface StoredParts extends Pick<EditParts, 'language' | 'active' | 'known'> {
  /** Called with a line for each policy of the API that this version does not understand; it is left out, and so denies. */
  readonly onUnreadable?: (lines: readonly string[]) => void
}

/** Puts policies of the API in force as the store has them. Call one at a time. */
export function followStored({ language, active, known, onUnreadable }: StoredParts) {
  async function read(record: PolicyRecord): Promise<PolicyEntry | undefined> {
    const entry = known.get(record.document)
    if (entry !== undefined) return entry
    const prepared = await prepareInput(language, inputOf(record))
    if ('entry' in prepared) return prepared.entry
    onUnreadable?.(prepared.lines)
    return undefined
  }

  return {
    async load(records: readonly PolicyRecord[]): Promise<void> {
      const editable = new Map<string, PolicyEntry>()
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

function inputOf({ name, document, createdAt, updatedAt }: PolicyRecord): PolicyInput {
  return {
    source: 'api',
    document: JSON.parse(document),
    createdAt,
    updatedAt,
    where: () => `policy ${name} of the API`,
  }
}
