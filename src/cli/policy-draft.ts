import { writeFile } from 'node:fs/promises'
import type { MadeDraft } from '../policies/draft.ts'
import { askedIn, askGateway, gatewayHelp, gatewayOptions } from './ask-gateway.ts'
import { configHelp } from './configuration.ts'
import { readCurl } from './curl.ts'
import { atHelp } from './gateway-address.ts'
import { jsonHelp, printJson, readArgs, type Shell, UsageError } from './shell.ts'

export const help = `usage: agent-gateway policy draft --hitl ID [OPTIONS]
       agent-gateway policy draft --agent ID [OPTIONS] -- curl ...
       agent-gateway policy draft --agent ID --shape=ID [OPTIONS]

Makes a rule from one request: from a held one, pending or decided, from the command line of curl behind --, or from a recorded
shape (the id is in GET /agents/{agentId}/shapes). The rule matches that request alone, until parts of it are opened. For each part it prints how many recorded requests of the agent it adds, and how many
of them were denied. Nothing is put in force.

${gatewayHelp}

  --open PART     leave a part open: method, host, tool, fields, 'segment 3'; may be repeated
  --effect E      Allow if absent, or Hitl, or Deny
  --name NAME     name of the rule
  --test FILE     write a test with the decision of now
${jsonHelp}: rule, yaml, matches, switches, warnings, difference, test, redacted
${atHelp}
${configHelp}

Example:
  agent-gateway policy draft --hitl q1w2e3 --open 'segment 3' --effect Allow`

const options = {
  ...gatewayOptions,
  hitl: { type: 'string' },
  agent: { type: 'string' },
  shape: { type: 'string' },
  open: { type: 'string', multiple: true },
  effect: { type: 'string' },
  name: { type: 'string' },
  test: { type: 'string' },
} as const

export async function run(shell: Shell): Promise<number> {
  const end = shell.args.indexOf('--')
  const { values } = readArgs({ ...shell, args: end < 0 ? shell.args : shell.args.slice(0, end) }, options)
  const { hitl, agent, shape, open, effect, name } = values
  const [program, ...words] = end < 0 ? [] : shell.args.slice(end + 1)
  if (hitl === undefined && (agent === undefined || (shape === undefined && program !== 'curl')))
    throw new UsageError('--hitl, or --agent with --shape or -- curl, is needed')
  const ofAgent = () => (shape === undefined ? { request: readCurl(words) } : { shapeId: shape })
  const body = {
    ...(hitl === undefined ? { agentId: agent, ...ofAgent() } : { hitlId: hitl }),
    ...(open && { open }),
    ...(effect && { effect }),
    ...(name && { name }),
  }
  const call = { method: 'POST', path: '/policies/drafts', body } as const
  const made = await askGateway<MadeDraft>(shell, askedIn(shell, values), call)
  if (values.test !== undefined && made.test !== null) await writeFile(values.test, made.test)
  if (values.json === true) {
    printJson(shell, made)
    return 0
  }
  shell.print(made.yaml.trimEnd())
  shell.complain(`matches ${made.matches} recorded requests`)
  for (const { part, open: isOpen, adds, denied } of made.switches)
    shell.complain(`${isOpen ? 'open  ' : 'closed'}  ${part}: ${adds} requests, ${denied} of them denied`)
  for (const { code, message } of made.warnings) shell.complain(`${message} (${code})`)
  if (made.redacted.length > 0) shell.complain(`values that were not shown: ${made.redacted.join(', ')}`)
  if (values.test !== undefined && made.test === null)
    shell.complain('no test: the request has a secret, or the agent no policy')
  return 0
}
