/**
 * Tells systemd how the service is (sd_notify(3)): ready, reloading, stopping, and that it is alive. Node has no datagram
 * sockets of unix, so the program systemd-notify sends the messages, one after the other; the unit has NotifyAccess=all.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { asError } from '../base/as-error.ts'
import type { Environment } from '../config/environment.ts'
import { systemClock } from '../runtime/clock.ts'
import { createSerialQueue } from '../runtime/serial-queue.ts'

/** The manager of the service, which waits for these words. */
export interface ServiceManager {
  /** The gateway serves. @param status for people: `systemctl status` shows it */
  ready(status: string): void
  reloading(): void
  /** Resolves when the manager knows. */
  stopping(): Promise<void>
  /** Says that the process is alive while `answers` is true, as often as the manager asks for it. */
  keepAlive(answers: () => boolean): void
}

const nobody: ServiceManager = { ready() {}, reloading() {}, async stopping() {}, keepAlive() {} }

/** Time that one message may take, milliseconds. */
const sendMs = 5_000

export interface ServiceManagerParts {
  readonly env: Environment
  readonly pid: number
  /** Called for the first message that could not be sent: the others would fail as well. */
  readonly onFault: (error: Error) => void
}

/** Does nothing where no manager listens. */
export function findServiceManager({ env, pid, onFault }: ServiceManagerParts): ServiceManager {
  const { NOTIFY_SOCKET, PATH } = env
  if (NOTIFY_SOCKET === undefined) return nobody
  const run = promisify(execFile)
  const inTurn = createSerialQueue()
  let hasFailed = false
  const send = (...variables: readonly string[]): Promise<void> =>
    inTurn(async () => {
      try {
        await run('systemd-notify', variables, { env: { NOTIFY_SOCKET, PATH }, timeout: sendMs })
      } catch (error) {
        if (!hasFailed) onFault(asError(error))
        hasFailed = true
      }
    })
  return {
    ready: status => void send('READY=1', `STATUS=${status}`),
    // Time since the start of the machine, as the manager counts it.
    reloading: () => void send('RELOADING=1', `MONOTONIC_USEC=${Math.floor(systemClock.steady() * 1_000)}`),
    stopping: () => send('STOPPING=1', 'STATUS=Finishing requests under way'),
    keepAlive(answers) {
      const limitMs = watchdogMs(env, pid)
      if (limitMs === undefined) return
      const beat = () => {
        if (answers()) void send('WATCHDOG=1')
      }
      beat()
      setInterval(beat, limitMs / 2).unref()
    },
  }
}

/** How often the manager wants to hear of this process, milliseconds (sd_watchdog_enabled(3)); undefined: never. */
function watchdogMs({ WATCHDOG_USEC, WATCHDOG_PID }: Environment, pid: number): number | undefined {
  const isOurs = WATCHDOG_PID === undefined || WATCHDOG_PID === String(pid)
  return isOurs && /^[1-9]\d{0,15}$/.test(WATCHDOG_USEC ?? '') ? Number(WATCHDOG_USEC) / 1_000 : undefined
}
