import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../runtime/clock.ts'
import { requestAuthority } from './ca.ts'
import { type Configuration, configHelp, configOption, readConfiguration } from './configuration.ts'
import { connectTo, findForwardProxy, findGateway, type GatewayAddress } from './gateway-address.ts'
import { catchSignals, type Program, runProgram } from './run/program.ts'
import { createRelay } from './run/relay.ts'
import { openRunKey, type RunKey } from './run/run-key.ts'
import { startRelay } from './run/start-relay.ts'
import { writeTrust } from './run/trust.ts'
import { programEnvironment } from './run/variables.ts'
import { readArgs, type Shell, UsageError } from './shell.ts'

export const help = `usage: agent-gateway run --agent NAME [--at ADDRESS] [--proxy ADDRESS] [--config FILE] -- PROGRAM [ARGUMENTS]

Runs a program, unchanged, that calls the world as the agent: its requests go through the forward proxy of the running
gateway, which decides each of them. The program is told so by HTTPS_PROXY and by the variables of its libraries, and
trusts the certificate authority of the gateway in addition to those of the system.
It never gets the key of the agent, which is made for the run with the credential of the first admin, and revoked at its
end. A key in AGENT_GATEWAY_KEY is used instead, and stays.
Nothing is locked: a program that does not read these variables calls without the gateway.

  --agent NAME     name or id of the agent; one that is not there is registered. Not needed with AGENT_GATEWAY_KEY
  --at ADDRESS     address of the gateway, as printed at start: http://HOST:PORT, https://HOST:PORT or unix:PATH;
                   if absent, the address in the configuration
  --proxy ADDRESS  address of its forward proxy; if absent, the address in the configuration
${configHelp}

The exit code is that of the program; 127 when it is not there, 126 when it cannot be started, and 128 and the number of
the signal that ended it.

Example:
  agent-gateway run --agent tour -- curl https://example.org`

const options = {
  ...configOption,
  agent: { type: 'string' },
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
  const configuration = readConfiguration(shell, values.config)
  const proxy = await findForwardProxy(configuration, values.proxy)
  const gateway = await findGateway(configuration, values.at)
  const authority = await requestAuthority(gateway)
  const key = await openKey(shell, { configuration, gateway, agent: values.agent })
  try {
    return await inFolder(async folder => {
      const place = await openPlace(proxy, key)
      try {
        const trust = authority === undefined ? undefined : await writeTrust(folder, authority, shell.env)
        const env = programEnvironment(shell.env, { ...place, trust })
        shell.complain(describe({ file, agent: values.agent, proxy, key, opensTls: trust !== undefined }))
        return await runProgram(shell, signals, { command: [file, ...args], env } satisfies Program)
      } finally {
        place.close()
      }
    })
  } finally {
    await key.end()
  }
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

/** A relay that others on this machine cannot use. */
async function openPlace(proxy: GatewayAddress, key: RunKey) {
  const password = randomBytes(18).toString('base64url')
  const relay = createRelay({
    connect: onReady => connectTo(proxy, onReady),
    gatewayName: proxy.name,
    authorization: () => `Bearer ${key.current()}`,
    password,
  })
  return { ...(await startRelay(relay)), password }
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'agent-gateway-run-'))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

interface Description {
  readonly file: string
  readonly agent: string | undefined
  readonly proxy: GatewayAddress
  readonly key: RunKey
  readonly opensTls: boolean
}

/** One line that says what was done. */
function describe({ file, agent, proxy, key, opensTls }: Description): string {
  const who = agent === undefined ? 'with the key in AGENT_GATEWAY_KEY' : `as the agent ${agent}`
  const first = key.note === undefined ? '' : ` (${key.note})`
  const tls = opensTls ? ' and trusts its certificate authority' : ''
  return `agent-gateway run: ${file} calls ${who}${first} through ${proxy.name}${tls}. Nothing is locked: what ignores HTTPS_PROXY goes past the gateway.`
}
