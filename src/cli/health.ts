import { parseJson } from '../base/json.ts'
import { isObject } from '../base/records.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { atHelp, callJson, findGateway } from './gateway-address.ts'
import { readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway health [--live] [--at ADDRESS] [--config FILE]

Asks the running gateway whether it serves proxied requests (GET /health/proxy). Exit code 0 when it does, else 1 within 5
seconds. For health checks of containers; it needs no token.

  --live         ask only whether the process works (GET /health/live)
${atHelp}
${configHelp}

Example:
  agent-gateway health --live || systemctl restart agent-gateway`

const options = { ...configOption, at: { type: 'string' }, live: { type: 'boolean' } } as const

const limitMs = 5_000

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, options)
  const configuration = readConfiguration(shell, values.config)
  const gateway = await findGateway(configuration, values.at, 'proxy')
  const path = values.live === true ? '/health/live' : '/health/proxy'
  const { status, text } = await callJson(gateway, { method: 'GET', path, withinMs: limitMs })
  if (status === 200) {
    shell.print('Healthy')
    return 0
  }
  const answer = parseJson(text)
  const why = isObject(answer) && typeof answer['detail'] === 'string' ? answer['detail'] : ''
  shell.complain(`Unhealthy: ${gateway.name} answered ${status}. ${why}`.trimEnd())
  return 1
}
