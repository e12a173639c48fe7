import { resolve } from 'node:path'
import { bootstrapFile, resetAdmin } from '../agents/bootstrap.ts'
import { createSecretHasher } from '../agents/secret.ts'
import { createClock, openStorage, type StorageParts, usesPostgres } from '../gateway/storage.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway admin reset [--config FILE]

Gives the first admin a new secret and makes it active again. With SQLite, stop the gateway first.
The secret is that of Security:Bootstrap:ClientSecret, or else a new one, written to bootstrap.json in
Storage:DataDirectory; with PostgreSQL it must be configured. Every token that was issued before becomes void, those of agents too. The audit trail records it.

${configHelp}

Example:
  agent-gateway admin reset --config /etc/agent-gateway/gateway.yaml`

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, configOption)
  const { config, baseDirectory } = readConfiguration(shell, values.config)
  const dataDirectory = resolve(baseDirectory, config.Storage.DataDirectory)
  const { AgentId, ClientSecret } = config.Security.Bootstrap
  const mayMakeCredential = !usesPostgres(config)
  const reporting = errorReport(shell)
  const clock = createClock(config, reporting.log)
  const { store } = await openStorage({
    ...{ config, onSettings() {}, baseDirectory, dataDirectory, clock },
    ...reporting,
  })
  const secrets = createSecretHasher({ cost: config.Security.AgentAuth.TokenRequests.BcryptCost, queueLength: 1 })
  try {
    const given = { dataDirectory, mayMakeCredential, agentId: AgentId, clientSecret: ClientSecret }
    const id = await resetAdmin({ store, secrets, clock, ...given })
    const where = ClientSecret === undefined ? bootstrapFile(dataDirectory) : 'Security:Bootstrap'
    shell.print(`admin ${id} has a new secret: ${where}. All tokens are void.`)
    return 0
  } finally {
    await secrets.close()
    await store.close()
  }
}

/** What the store has to say goes to the person who runs the command. */
function errorReport({ complain }: Shell): Pick<StorageParts, 'log' | 'report'> {
  const say = (_: object, text: string) => complain(text)
  return { log: { info: say, warn: say, error: say }, report: (what, error) => complain(`${what}: ${String(error)}`) }
}
