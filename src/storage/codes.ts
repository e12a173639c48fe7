/** One-time codes of the console in the storage contract. */
import type { AuditEntry } from './audit.ts'

export interface CodeRecord {
  /** SHA-256 of the code, hex. */
  readonly hash: string
  readonly agentId: string
  readonly expiresAt: number
}

/** How many codes are valid at the same time. */
export interface CodeLimits {
  /** Of one agent: it cannot push out the codes of others. */
  readonly maxEach: number
  readonly max: number
}

export const codeLimits: CodeLimits = { maxEach: 5, max: 1_000 }

export interface CodeTable {
  /** Keeps a code. Those that expired at `now` are forgotten, and of more than the limits those that expire first. */
  keep(code: CodeRecord, limits: CodeLimits & { readonly now: number }, entry: AuditEntry): Promise<void>
  /** The agent of a code that is not over at `now`. The code is used up: of several callers one gets it. */
  take(hash: string, now: number): Promise<string | undefined>
}
