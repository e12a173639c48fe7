import type { Repeats } from '../audit/repeats.ts'
import type { LiveSettings } from '../config/live.ts'
import type { Config } from '../config/schema.ts'
import type { Fence } from '../fleet/fence.ts'
import type { FenceWatch } from '../fleet/fence-watch.ts'
import type { PublicNames } from '../http/virtual-hosts.ts'
import type { Log } from '../log/log.ts'
import type { LogStatus } from '../log/output.ts'
import type { Clock } from '../runtime/clock.ts'
import { type CredentialKey, subjectFacts } from '../storage/credentials.ts'
import type { Store } from '../storage/store.ts'
import type { Fleet } from './fleet.ts'

/** Parts of a gateway that are made before the others. The others pick from them. */
export interface Base {
  readonly config: Config
  /** For what is made from them and kept. */
  readonly onSettings: LiveSettings['onChange']
  /** Folder that relative paths of the configuration start from: that of gateway.yaml. */
  readonly baseDirectory: string
  readonly dataDirectory: string
  readonly clock: Clock
  readonly log: Log
  readonly logStatus: () => LogStatus
  readonly store: Store
  /** This process among the gateways: a UUID that is random for each process, and its name for people. */
  readonly member: { readonly id: string; readonly name: string }
  /** Whether this gateway may serve, with a store that another process can open as well. */
  readonly fence: Fence | undefined
  /** Reports when the gateway may no longer serve. */
  readonly fenceWatch: Pick<FenceWatch, 'subscribe'> | undefined
  /** The gateways that share the store. */
  readonly fleet: Fleet
  readonly repeats: Repeats
  /** Called for faults that change no answer. */
  readonly report: (what: string, error: unknown) => void
}

/** Gives why this gateway may not serve; undefined while it may. Absent without a fence. */
export const createFenced = (fence: Fence | undefined): (() => 'fenced' | undefined) | undefined =>
  fence && (() => (fence.isOpen ? undefined : 'fenced'))

/** URLs of the gateway, or of proxies in front of it. */
export function selfUrlsOf({ System, Egress }: Config): readonly string[] {
  const publicUrls = [System.PublicUrl, System.Server.Management.PublicUrl].filter(url => url !== undefined)
  return [...Egress.SelfUrls, ...publicUrls]
}

/** The origin under which agents reach the gateway; undefined when it is not configured. */
export const publicUrlOf = ({ System }: Config): string | undefined => originOf(System.PublicUrl)

/** How clients reach the gateway. */
export function publicNames(config: Config): PublicNames {
  const publicUrl = publicUrlOf(config)
  // TLS may end in front of the gateway; then the public URL has the scheme.
  const isSecure = publicUrl?.startsWith('https:') || config.System.Server.Tls.CertificateFile !== undefined
  return { publicUrl, scheme: isSecure ? 'https' : 'http' }
}

/** The origin under which people reach the console; undefined when it is not configured. */
export const consoleUrlOf = ({ System }: Config): string | undefined =>
  originOf(System.Server.Management.Enabled ? System.Server.Management.PublicUrl : System.PublicUrl)

/** Where a person connects an account. */
export function connectUrlOf(config: Config): (key: CredentialKey) => string | undefined {
  const origin = consoleUrlOf(config)
  return ({ name, subject }) =>
    origin && `${origin}/console/#/connect/${name}?${new URLSearchParams(subjectFacts(subject))}`
}

const originOf = (url: string | undefined) => (url === undefined ? undefined : new URL(url).origin)

/** False when they could not be read; then the old ones stay. */
export async function reloadFiles(
  part: { reload(): Promise<void> } | undefined,
  what: string,
  report: Base['report'],
): Promise<boolean> {
  try {
    await part?.reload()
    return true
  } catch (error) {
    report(`${what} could not be reloaded, the old ones stay`, error)
    return false
  }
}
