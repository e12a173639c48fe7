import type { Refusals } from '../audit/refusals.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import type { Log } from '../log.ts'
import type { LogStatus } from '../log-output.ts'
import type { Store } from '../storage/store.ts'

/** Parts of a gateway that are made before the others. The others pick from them. */
export interface Base {
  readonly config: Config
  /** Folder that relative paths of the configuration start from: that of gateway.yaml. */
  readonly baseDirectory: string
  readonly dataDirectory: string
  readonly clock: Clock
  readonly log: Log
  readonly logStatus: () => LogStatus
  readonly store: Store
  readonly refusals: Refusals
  /** Called for faults that change no answer. */
  readonly report: (what: string, error: unknown) => void
}

/** The origin under which people and agents reach the gateway; undefined when it is not configured. */
export function publicUrlOf({ System }: Config): string | undefined {
  return System.PublicUrl === undefined ? undefined : new URL(System.PublicUrl).origin
}
