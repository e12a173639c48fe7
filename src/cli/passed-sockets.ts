import type { Environment } from '../config/environment.ts'
import { StartupError } from '../errors.ts'

/** systemd passes descriptors from this one on: those before are standard input, output and error. */
const first = 3

/**
 * Descriptors of the sockets that systemd, or a compatible parent, passed to this process (sd_listen_fds(3)).
 * What was meant for another process is not looked at.
 *
 * @throws StartupError
 */
export function passedSockets(env: Environment, pid: number): readonly number[] {
  const { LISTEN_FDS, LISTEN_PID } = env
  if (LISTEN_FDS === undefined || LISTEN_PID !== String(pid)) return []
  if (!/^[1-9]\d{0,3}$/.test(LISTEN_FDS))
    throw new StartupError('env LISTEN_FDS: must be the number of sockets passed.')
  return Array.from({ length: Number(LISTEN_FDS) }, (_, index) => first + index)
}
