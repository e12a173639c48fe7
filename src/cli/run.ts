import { randomBytes } from 'node:crypto'
import { userInfo } from 'node:os'
import { systemClock } from '../runtime/clock.ts'
import { requestAuthority } from './ca.ts'
import { type Configuration, configHelp, configOption, readConfiguration } from './configuration.ts'
import { connectTo, findForwardProxy, findGateway, type GatewayAddress } from './gateway-address.ts'
import { hiddenOf } from './run/hidden.ts'
import { type LockParts, lockedPort, lockProblem, startLocked } from './run/lock.ts'
import { cannotStart, catchSignals, runProgram, type Signals, untilEnd } from './run/program.ts'
import { createRelay, type Relay } from './run/relay.ts'
import { inRunFolder } from './run/run-folder.ts'
import { openRunKey, type RunKey } from './run/run-key.ts'
import { withoutUnixSockets } from './run/seccomp.ts'
import { startRelay } from './run/start-relay.ts'
import { systemBundle, type TrustFiles, writeTrust } from './run/trust.ts'
import { programEnvironment } from './run/variables.ts'
import { readArgs, type Shell, UsageError } from './shell.ts'

export const help = `usage: agent-gateway run --agent NAME [--lock [--no-unix-sockets]] [--at ADDRESS] [--proxy ADDRESS] [--config FILE] -- PROGRAM [ARGUMENTS]

Runs a program, unchanged, that calls the world as the agent: its requests go through the forward proxy of the running
gateway, which decides each of them. The program is told so by HTTPS_PROXY and by the variables of its libraries, and
trusts the certificate authority of the gateway in addition to those of the system.
It never gets the key of the agent, which is made for the run with the credential of the first admin, and revoked at its
end. A key in AGENT_GATEWAY_KEY is used instead, and stays.
Without --lock a program that does not read these variables calls without the gateway.

  --agent NAME     name or id of the agent; one that is not there is registered. Not needed with AGENT_GATEWAY_KEY
  --lock           shuts every other way out: the program has a network of its own, whose one port leads to the gateway,
                   and sees no sockets and no processes of the system. Needs Linux and bubblewrap
  --no-unix-sockets
                   with --lock: the program can open no unix sockets, also in folders that it sees
  --at ADDRESS     address of the gateway, as printed at start: http://HOST:PORT, https://HOST:PORT or unix:PATH;
                   if absent, the address in the configuration
  --proxy ADDRESS  address of its forward proxy; if absent, the address in the configuration
${configHelp}

The exit code is that of the program; 127 when it is not there, 126 when it cannot be started or locked, and 128 and the
number of the signal that ended it.

Example:
  agent-gateway run --agent tour -- curl https://example.org`

const options = {
  ...configOption,
  agent: { type: 'string' },
  lock: { type: 'boolean' },
  'no-unix-sockets': { type: 'boolean' },
  at: { type: 'string' },
  proxy: { type: 'string' },
} as const

export async function run(shell: Shell): Promise<number> {
  const signals = catchSignals(shell)
  const end = shell.args.indexOf('--')
  const own = end < 0 ? shell.args : shell.args.slice(0, end)
  const { values, positionals } = readArgs({ ...shell, args: own }, options, own.length)
  const [file, ...args] = end < 0 ? [] : shell.args.slice(end + 1)
  if (file === undefined || positionals.length > 0) throw new UsageError('the program must stand behind --')
  const isFiltered = values['no-unix-sockets'] === true
  if (isFiltered && !values.lock) throw new UsageError('--no-unix-sockets needs --lock')
  const filter = isFiltered ? withoutUnixSockets(process.arch) : undefined
  const unfiltered = isFiltered && filter === undefined ? `--no-unix-sockets does not know ${process.arch}.` : undefined
  const problem = unfiltered ?? (values.lock ? lockProblem() : undefined)
  if (problem !== undefined) {
    shell.complain(`agent-gateway run: ${problem}`)
    return cannotStart
  }
  const configuration = readConfiguration(shell, values.config)
  const proxy = await findForwardProxy(configuration, values.proxy)
  const gateway = await findGateway(configuration, values.at)
  const authority = await requestAuthority(gateway)
  const key = await openKey(shell, { configuration, gateway, agent: values.agent })
  try {
    return await inRunFolder(shell.pid, async folder => {
      const trust = authority === undefined ? undefined : await writeTrust(folder, authority, shell.env)
      const secrets = configuration.config.Upstreams.flatMap(({ ValueFromEnv }) => ValueFromEnv ?? [])
      const asked: Run = { shell, signals, command: [file, ...args], proxy, key, trust, secrets }
      const isLocked = values.lock === true
      shell.complain(describe(asked, { agent: values.agent, isLocked }))
      return isLocked ? runLocked(asked, { folder, hidden: hiddenOf(configuration), filter }) : runUnlocked(asked)
    })
  } finally {
    await key.end()
  }
}

interface Run {
  readonly shell: Shell
  readonly signals: Signals
  readonly command: readonly [string, ...string[]]
  readonly proxy: GatewayAddress
  readonly key: RunKey
  /** Undefined when the gateway opens no TLS. */
  readonly trust: TrustFiles | undefined
  /** Variables with the credentials that the gateway attaches. */
  readonly secrets: readonly string[]
}

/** The program uses a port that others on this machine could use too, but for its password. */
async function runUnlocked(asked: Run): Promise<number> {
  const { shell, signals, command, trust, secrets } = asked
  const password = randomBytes(18).toString('base64url')
  const server = await startRelay(relayOf(asked, password))
  try {
    const env = programEnvironment(shell.env, { port: server.port, password, trust, secrets })
    return await runProgram(shell, signals, { command, env })
  } finally {
    server.close()
  }
}

async function runLocked(asked: Run, locking: Pick<LockParts, 'folder' | 'hidden' | 'filter'>): Promise<number> {
  const { shell, signals, command, trust, secrets } = asked
  const env = programEnvironment(shell.env, { port: lockedPort, password: undefined, trust, secrets })
  const system = systemBundle()
  const bundle = trust === undefined || system === undefined ? undefined : { own: trust.bundle, system }
  const parts = { ...locking, relay: relayOf(asked, undefined), cwd: process.cwd(), bundle }
  const { child, receiver } = startLocked(parts, { command, env })
  signals.passTo(receiver)
  return untilEnd(child, error => {
    shell.complain(`agent-gateway run: bubblewrap cannot be started (${error.code ?? error.message})`)
    return cannotStart
  })
}

function relayOf({ proxy, key }: Run, password: string | undefined): Relay {
  return createRelay({
    connect: onReady => connectTo(proxy, onReady),
    gatewayName: proxy.name,
    authorization: () => `Bearer ${key.current()}`,
    password,
  })
}

interface Asked {
  readonly configuration: Configuration
  readonly gateway: GatewayAddress
  readonly agent: string | undefined
}

/** @throws UsageError when neither an agent nor a key is named */
async function openKey({ env, pid, complain }: Shell, { agent, ...asked }: Asked): Promise<RunKey> {
  const given = env['AGENT_GATEWAY_KEY']
  if (given !== undefined) return { current: () => given, note: undefined, end: async () => {} }
  if (agent === undefined) throw new UsageError('--agent NAME is missing, and AGENT_GATEWAY_KEY is not set')
  return openRunKey({ ...asked, agent, pid, complain, clock: systemClock })
}

interface Description {
  readonly agent: string | undefined
  readonly isLocked: boolean
}

/** One line that says what was done. */
function describe({ command: [file], proxy, key, trust }: Run, { agent, isLocked }: Description): string {
  const who = agent === undefined ? 'with the key in AGENT_GATEWAY_KEY' : `as the agent ${agent}`
  const first = key.note === undefined ? '' : ` (${key.note})`
  const trusts = trust === undefined ? '' : ' and trusts its certificate authority'
  const done = `agent-gateway run: ${file} calls ${who}${first} through ${proxy.name}${trusts}.`
  if (!isLocked) return `${done} Nothing is locked: what ignores HTTPS_PROXY goes past the gateway.`
  const isRoot = userInfo().uid === 0
  return `${done} Every other way out is shut.${isRoot ? ' Files are not: it can write what root can.' : ''}`
}
