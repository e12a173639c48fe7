import { StartupError } from '../base/refusals.ts'
import type { Environment } from '../config/environment.ts'
import { createGateway, type Gateway } from '../gateway/gateway.ts'
import type { ListenerAddress, PassedEndpoint } from '../http/listeners.ts'
import type { Service } from '../http/service.ts'
import { isJournal } from '../log/journal.ts'
import { createLog } from '../log/log.ts'
import { systemClock } from '../runtime/clock.ts'
import { repeatable } from '../runtime/repeat.ts'
import { ownVersion } from '../runtime/version.ts'
import { beginBeats, createWatch } from '../runtime/watchdog.ts'
import { configHelp, configOption, loadConfiguration, readConfiguration } from './configuration.ts'
import { findServiceManager, type ServiceManager } from './notify.ts'
import { saveMemory } from './save-memory.ts'
import { readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway serve [--config FILE]

Starts the gateway. Log lines (JSON) go to standard output, messages for people to standard error.
SIGTERM and SIGINT finish requests in flight (System:Server:StopDelaySeconds, DrainSeconds) and exit; a second signal exits at once.
SIGHUP reloads the policies, the credentials of upstreams, the certificates, and the settings that docs/running.md lists;
the log names changed settings that need a restart.
Sockets passed by systemd (LISTEN_FDS) replace System:Server:Http; one named management, System:Server:Management;
one named forward, ForwardProxy.

${configHelp}

Example:
  agent-gateway serve --config /etc/agent-gateway/gateway.yaml`

/** Tidying up may take so long beyond System:Server:StopDelaySeconds and DrainSeconds, milliseconds. */
const closeGraceMs = 5_000
/** A signal that comes again within this was passed on, not sent again, milliseconds. */
const sameWishMs = 1_000

export async function run(shell: Shell): Promise<number> {
  // From the first line on, so that a signal during the start does not end it.
  const hangup = listenForHangup(shell)
  const { values } = readArgs(shell, configOption)
  const configuration = readConfiguration(shell, values.config)
  const log = createLog(configuration.config.Logging.Level, {
    complain: shell.complain,
    isJournal: isJournal(shell.env['JOURNAL_STREAM']),
  })
  const manager = findServiceManager({
    env: shell.env,
    pid: shell.pid,
    onFault: error => log.warn({ error }, 'systemd cannot be told how the gateway is'),
  })
  // Lines are buffered: those that say why it ended must not be lost.
  shell.onExit(log.flush)
  const { config, file, baseDirectory } = configuration
  if (config.System.Server.Threads === 1) saveMemory()
  const watch = createWatch()
  const gateway = await createGateway(config, {
    log,
    logStatus: log.status,
    baseDirectory,
    env: shell.env,
    passedSockets: passedSockets(shell.env, shell.pid),
    watch,
    readConfig: () => loadConfiguration(shell, values.config),
    setLogLevel: log.setLevel,
  })
  const addresses = await gateway.listen().catch(async error => {
    await gateway.close()
    throw error
  })
  log.info({ version: ownVersion() }, 'started')
  beginBeats(watch)
  const status = `Serving at ${addresses.map(({ url }) => url).join(', ')}`
  manager.ready(status)
  manager.keepAlive(() => (gateway.pool?.stuck ?? 0) === 0)
  hangup(
    repeatable(async () => {
      manager.reloading()
      const succeeded = await gateway.reload()
      const needRestart = gateway.needRestart()
      const waits = needRestart.length === 0 ? '' : `; a restart is needed for ${needRestart.join(', ')}`
      manager.ready(`${status}${succeeded ? '' : '; the last reload failed, see the log'}${waits}`)
    }),
  )
  const { StopDelaySeconds, DrainSeconds } = config.System.Server
  const limitMs = (StopDelaySeconds + DrainSeconds) * 1_000 + closeGraceMs
  const closed = untilClosed(shell, gateway, { log, limitMs, manager })
  shell.complain(startupBlock(addresses, file?.path, gateway))
  const code = await closed
  // Everything is closed or given up. What hangs must not keep the process.
  await end(shell, gateway, log, code)
  return code
}

/** Calls its argument for each SIGHUP, and once at first if one came before. */
function listenForHangup(shell: Shell): (handler: () => void) => void {
  let handle: (() => void) | undefined
  let missed = false
  shell.onSignal('SIGHUP', () => {
    if (handle === undefined) missed = true
    else handle()
  })
  return handler => {
    handle = handler
    if (missed) handler()
  }
}

interface ShutdownParts {
  readonly log: FlushedLog
  readonly manager: Pick<ServiceManager, 'stopping'>
  /** How long closing may take before the process is killed, milliseconds. */
  readonly limitMs: number
}

type FlushedLog = ReturnType<typeof createLog>

/** Resolves with the exit code once a signal has ended the gateway. */
function untilClosed(shell: Shell, gateway: Gateway, { log, limitMs, manager }: ShutdownParts): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  let closing: { readonly signal: string; readonly at: number } | undefined
  const stop = (signal: 'SIGTERM' | 'SIGINT'): void => {
    if (closing !== undefined) {
      // npm passes on a signal that the terminal has sent to all processes: it arrives twice.
      if (signal === closing.signal && systemClock.steady() - closing.at < sameWishMs) return
      log.error({ count: gateway.inFlight() }, 'ended at once, requests in flight were cut off')
      void end(shell, gateway, log, 1)
      return
    }
    closing = { signal, at: systemClock.steady() }
    void manager.stopping()
    log.info({ count: gateway.inFlight() }, 'stopping: no new requests, finishing those in flight')
    const late = setTimeout(() => {
      log.error({ count: gateway.inFlight() }, 'did not stop in time and is killed')
      kill(shell, log)
    }, limitMs)
    const closed = gateway.close().finally(() => clearTimeout(late))
    closed.then(cutOff => {
      log.info({ count: cutOff }, cutOff === 0 ? 'stopped: no request was cut off' : 'stopped: requests were cut off')
      resolve(cutOff === 0 ? 0 : 1)
    }, reject)
  }
  shell.onSignal('SIGTERM', () => stop('SIGTERM'))
  shell.onSignal('SIGINT', () => stop('SIGINT'))
  return promise
}

/** A thread that hangs in the system keeps the process from ending by itself. */
async function end(shell: Shell, { pool }: Gateway, log: FlushedLog, code: number): Promise<void> {
  await pool?.close()
  if ((pool?.stuck ?? 0) > 0) kill(shell, log)
  else shell.exit(code)
}

function kill(shell: Shell, log: FlushedLog): void {
  log.flush()
  shell.kill()
}

/** How to reach a page of the gateway. */
function pageAt(addresses: readonly ListenerAddress[], path: string): string {
  const tcp = addresses.find(({ port, only = 'management' }) => port !== undefined && only === 'management')
  return tcp === undefined ? `http://localhost${path}, over the unix socket` : `${tcp.url}${path}`
}

const addressNames: Readonly<Record<Service, string>> = {
  proxy: 'Address',
  management: 'For people',
  forward: 'Forward proxy',
}

function startupBlock(addresses: readonly ListenerAddress[], file: string | undefined, gateway: Gateway): string {
  const rows = [
    ['Version', ownVersion()],
    ...addresses.map(({ url, only = 'proxy' }) => [addressNames[only], url] as const),
    ['Console', `${pageAt(addresses, '/console/')} (agent-gateway console prints a link that signs in)`],
    ['Docs', pageAt(addresses, '/open-api')],
    ['Configuration', file ?? 'defaults and environment (no gateway.yaml here)'],
    ...gateway.summary,
  ]
  const lines = rows.map(([name = '', text = '']) => `  ${name.padEnd(15)}${text}`)
  return ['', 'agent-gateway is ready', '', ...lines, ''].join('\n')
}

/** systemd passes descriptors from this one on: those before are standard input, output and error. */
const first = 3

/**
 * The sockets that systemd, or a compatible parent, passed to this process (sd_listen_fds(3)).
 * Sockets that were passed to another process are ignored.
 *
 * @throws StartupError
 */
export function passedSockets(env: Environment, pid: number): readonly PassedEndpoint[] {
  const { LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES } = env
  if (LISTEN_FDS === undefined || LISTEN_PID !== String(pid)) return []
  if (!/^[1-9]\d{0,3}$/.test(LISTEN_FDS))
    throw new StartupError('env LISTEN_FDS: must be the number of sockets passed.')
  const names = LISTEN_FDNAMES?.split(':') ?? []
  return Array.from({ length: Number(LISTEN_FDS) }, (_, index) => {
    const name = names[index]
    return { fd: first + index, ...(name !== undefined && { name }) }
  })
}
