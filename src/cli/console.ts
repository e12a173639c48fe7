import { StartupError } from '../base/refusals.ts'
import { consoleUrlOf } from '../gateway/base.ts'
import { answerOf, gatewayHelp, managementToken, type RefusedCall, whyOf } from './ask-gateway.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { atHelp, findGateway, type GatewayAddress } from './gateway-address.ts'
import { readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway console [--as NAME] [--at ADDRESS] [--url URL] [--config FILE]

Prints a link that opens the console in a browser, signed in. It works once, for a minute.
${gatewayHelp}

  --as NAME      name or id of an agent with the role reviewer, auditor or admin; if absent, that of the token.
                 Verdicts and the audit trail name this agent.
${atHelp}
  --url URL      address of the gateway in the browser, such as https://gateway.example; if absent,
                 the configured PublicUrl or that of --at
${configHelp}

Examples:
  agent-gateway console
  agent-gateway console --as ada --url https://gateway.example`

const options = {
  ...configOption,
  as: { type: 'string' },
  at: { type: 'string' },
  url: { type: 'string' },
} as const

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, options)
  const configuration = readConfiguration(shell, values.config)
  const gateway = await findGateway(configuration, values.at)
  const base = baseOf(gateway, values.url ?? consoleUrlOf(configuration.config))
  const token = await managementToken(shell, configuration, gateway)
  const code = await requestCode(gateway, token, values.as)
  shell.print(`${base}/console/#code=${code}`)
  return 0
}

function baseOf({ name }: GatewayAddress, given: string | undefined): string {
  const url = URL.parse(given ?? name)
  if (url !== null && /^https?:$/.test(url.protocol)) return url.href.replace(/\/+$/, '')
  if (given !== undefined) throw new StartupError(`${given} is not a URL. Use one such as https://gateway.example.`)
  throw new StartupError(
    'A browser cannot open a unix socket. Name the address of the proxy in front of it with --url.',
  )
}

async function requestCode(gateway: GatewayAddress, token: string, agent: string | undefined): Promise<string> {
  const call = { method: 'POST', path: '/console/codes', body: agent === undefined ? {} : { agent }, token } as const
  const explain = (refused: RefusedCall) => `${gateway.name} gave no link. ${whyOf(refused)}`
  return (await answerOf<{ readonly code: string }>(gateway, call, explain)).code
}
