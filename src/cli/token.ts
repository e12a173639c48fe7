import { requestAdminToken } from './admin-token.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { atHelp, findGateway } from './gateway-address.ts'
import { readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway token [--at ADDRESS] [--config FILE]

Asks the running gateway for a token of the first admin and prints it alone on a line.
The credential is that of Security:Bootstrap or of bootstrap.json in Storage:DataDirectory.
AGENT_GATEWAY_TOKEN is not read: this command gets the token that it holds for others.

${atHelp}
${configHelp}

Example:
  curl -H "Authorization: Bearer $(agent-gateway token)" http://127.0.0.1:7080/agents`

const options = { ...configOption, at: { type: 'string' } } as const

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, options)
  const configuration = readConfiguration(shell, values.config)
  shell.print(await requestAdminToken(configuration, await findGateway(configuration, values.at)))
  return 0
}
