import type { Clock } from '../clock.ts'
import { uuid } from '../config/formats.ts'
import type { Log } from '../log.ts'
import type { FailedLogin } from '../management/parts.ts'
import type { Bounds } from '../telemetry/bounds.ts'
import { createQuiet } from '../telemetry/quiet.ts'

interface LoginParts {
  readonly clock: Clock
  readonly log: Pick<Log, 'warn'>
  readonly bounds: Bounds
}

/** Tells the operator of logins that fail: once a minute for each agent id and client address. */
export function createLoginNotes({ clock, log, bounds }: LoginParts): (failed: FailedLogin) => void {
  const isFirst = createQuiet(clock)
  return ({ code, agentId = '', address, requestId }) => {
    // Any other text is the caller's own.
    const id = uuid(agentId) === undefined ? agentId.toLowerCase() : undefined
    if (code === 'too_many_logins') bounds.reached('logins', id, requestId)
    else if (code === 'unauthenticated' && isFirst(`${id} ${address}`)) {
      log.warn({ agentId: id, clientIp: address, requestId }, 'login failed')
    }
  }
}
