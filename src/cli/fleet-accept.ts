import { StartupError } from '../base/refusals.ts'
import { postgresSettings, usesPostgres } from '../gateway/storage.ts'
import { systemClock } from '../runtime/clock.ts'
import { acceptLoss } from '../storage/postgres/accept.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway fleet accept [--put-back] [--config FILE]

Goes on with a PostgreSQL database that has lost what was written: after a failover to a standby that lagged behind, or
after a dump was put back. Gateways that run stop to serve when they find such a loss, and serve again after this command.

What the database has may be older than what has happened. So, in one transaction: approvals of waiting requests are
removed, approved requests that may have been sent are not sent again by themselves, grants and keys of agents are
removed, and every token becomes void. The audit trail records it. Then revoke again what was revoked since.

  --put-back     you put a dump back: do it although no gateway has found a loss
${configHelp}

Examples:
  agent-gateway fleet accept
  agent-gateway fleet accept --put-back`

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, { ...configOption, 'put-back': { type: 'boolean' } })
  const { config, baseDirectory } = readConfiguration(shell, values.config)
  if (!usesPostgres(config)) {
    throw new StartupError(
      'There is nothing to accept: with Storage:Provider Sqlite the gateway notices an older database at its start, and goes on by itself.',
    )
  }
  const settings = postgresSettings(config, baseDirectory)
  const { why, unknown, grants, keys } = await acceptLoss(settings, values['put-back'] ?? false, systemClock.now())
  shell.print(`accepted: ${why}`)
  shell.print(
    `${unknown} requests may have been sent, ${grants} grants and ${keys} keys were removed, all tokens are void`,
  )
  shell.print('Now revoke again the agents that were revoked since.')
  return 0
}
