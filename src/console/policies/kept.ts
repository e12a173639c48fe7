/** What an author has typed and not published, kept for this tab. */
import { drafts, policyKey, setDraft } from '../drafts.ts'
import type { DraftTest } from './tests.tsx'

export interface KeptPolicy {
  /** Null: what is in force. */
  readonly text: string | null
  readonly tests: readonly DraftTest[]
  /** The version that the author began from; null: a new policy. */
  readonly version: string | null
}

/** @param name empty: of the new policy */
export function keptPolicy(name: string): KeptPolicy | undefined {
  const text = drafts.value.get(policyKey(name))
  return text === undefined ? undefined : JSON.parse(text)
}

/** @param kept undefined: there is nothing to keep any more */
export function keepPolicy(name: string, kept: KeptPolicy | undefined): void {
  setDraft(policyKey(name), kept === undefined ? '' : JSON.stringify(kept))
}
