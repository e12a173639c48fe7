/** Takes a gateway from SQLite to PostgreSQL. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { verifyTrail } from '../audit/trail.ts'
import { StartupError } from '../base/refusals.ts'
import { schemaName } from '../config/formats.ts'
import { type CopyEnds, copyTables, trailOf } from '../storage/copy.ts'
import type { PostgresSettings } from '../storage/postgres/settings.ts'
import { fillPostgres } from '../storage/postgres/whole.ts'
import type { Db } from '../storage/schema.ts'
import { readSqlite } from '../storage/sqlite/whole.ts'
import { type Configuration, configHelp, configOption, readConfiguration } from './configuration.ts'
import { readArgs, type Shell, UsageError } from './shell.ts'

export const help = `usage: agent-gateway storage copy --from data --to postgres://user@host/database [OPTIONS]

Copies everything of a gateway from the data folder (SQLite) to an empty PostgreSQL schema: agents and their keys,
policies, held requests with their sealed bodies and answers, grants, seen tools and the audit trail. Stop the gateway
first. The copy is made completely or not at all. Before it counts, every table is read back, and the audit trail is
verified link by link; the last hash is printed. The source stays as it is. There is no way back to a data folder.

  --from DIR     the data folder
  --to ADDRESS   postgres://user:password@host:port/database
                 Other users of this machine can read arguments (ps). Put an address with a password into the
                 environment instead: AGENT_GATEWAY_STORAGE_TO.
  --schema NAME  schema in the database, agent_gateway if absent; created by the copy
  --tls MODE     VerifyFull (default), or Off for a database on this machine
  --ca-file FILE certificates to trust, PEM; those of the system if absent
${configHelp}

Do not start the source again after gateways have run on the copy: approved requests could be sent twice.

Example:
  agent-gateway storage copy --from data --to postgres://gateway@db/gateway --ca-file /etc/ssl/db.pem`

const options = {
  ...configOption,
  from: { type: 'string' },
  to: { type: 'string' },
  schema: { type: 'string', default: 'agent_gateway' },
  tls: { type: 'string', default: 'VerifyFull' },
  'ca-file': { type: 'string' },
} as const

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, options, Number.POSITIVE_INFINITY)
  // An operand may be an address with a password: it is not repeated.
  if (positionals.length > 0) throw new UsageError('name the source with --from and the target with --to')
  const configuration = readConfiguration(shell, values.config)
  const folder = folderOf(values.from)
  const settings = settingsOf(shell, values)
  const proceed = createBrake(shell)
  const { copied, lastHash } = await readSqlite(folder, async source => {
    // First, so that no transaction of the target waits for it.
    const lastHash = await verified(source, 'source')
    return fillPostgres(settings, target => copyVerified({ from: source, to: target, proceed }, lastHash))
  }).catch(error => {
    throw inOptions(error)
  })
  for (const { table, rows } of copied) shell.print(`${table.padEnd(14)}${rows}`)
  shell.print(`the audit trail was verified at the target; the last hash is ${lastHash}`)
  for (const line of keysOfDatabase(configuration, folder)) shell.print(line)
  return 0
}

/** @param before hash of the last record of the source */
async function copyVerified(ends: CopyEnds, before: string) {
  const copied = await copyTables(ends)
  const lastHash = await verified(ends.to, 'target')
  ends.proceed()
  if (lastHash !== before) throw new StartupError('The audit trail of the target ends differently. Nothing was copied.')
  return { copied, lastHash }
}

async function verified(db: Db, place: string): Promise<string> {
  const result = await verifyTrail(trailOf(db))
  if (result.ok) return result.lastHash
  throw new StartupError(
    `The audit trail of the ${place} is broken at entry ${result.firstBroken}: ${result.why}. Nothing was copied.`,
  )
}

/** A signal ends the copy between two batches, so that it is rolled back in order; a second one ends it at once. */
function createBrake(shell: Shell): () => void {
  let isPulled = false
  const pull = (): void => {
    if (isPulled) shell.exit(1)
    isPulled = true
  }
  shell.onSignal('SIGINT', pull)
  shell.onSignal('SIGTERM', pull)
  return () => {
    if (isPulled) throw new StartupError('Interrupted. Nothing was copied.')
  }
}

const isAddress = (place: string): boolean => /[=@]|:\/\//.test(place)

function folderOf(given: string | undefined): string {
  if (given === undefined || given === '') throw new UsageError('--from is missing')
  if (isAddress(given) && !existsSync(given)) {
    throw new UsageError('--from must be a data folder: there is no copy out of a database')
  }
  return resolve(given)
}

/** Longer than gateways wait for the database: no request waits for a copy. */
const timeoutSeconds = 10

interface CopyTarget {
  readonly to?: string | undefined
  readonly schema: string
  readonly tls: string
  readonly 'ca-file'?: string | undefined
}

function settingsOf(shell: Shell, { to, schema, tls, 'ca-file': caFile }: CopyTarget): PostgresSettings {
  const connectionString = to ?? shell.env['AGENT_GATEWAY_STORAGE_TO']
  if (connectionString === undefined || connectionString === '') throw new UsageError('--to is missing')
  if (!/^postgres(ql)?:/i.test(connectionString)) {
    throw new UsageError('--to must be postgres://user:password@host:port/database')
  }
  const problem = schemaName(schema)
  if (problem !== undefined) throw new StartupError(`--schema: ${problem}`)
  if (tls !== 'VerifyFull' && tls !== 'Off') throw new StartupError('--tls: must be VerifyFull or Off')
  return { connectionString, schema, tls, caFile, poolSize: 1, timeoutSeconds }
}

/** The problem in the words of this command, which reads no settings of the database. */
function inOptions(error: unknown): unknown {
  if (!(error instanceof StartupError)) return error
  const message = error.message
    .replaceAll('Storage:PostgreSQL:ConnectionString', '--to')
    .replaceAll('Storage:PostgreSQL:Tls', '--tls')
    .replaceAll(/(Storage:PostgreSQL:)?CaFile/g, '--ca-file')
  return new StartupError(message)
}

/** What gateways on the database need to open what is sealed. Names keys, but never shows them. */
function keysOfDatabase({ config: { Security } }: Configuration, folder: string): readonly string[] {
  const file = join(folder, 'signing.key')
  const { Secret, PreviousSecrets } = Security.AgentAuth.TokenIssuance
  const name = 'Security:AgentAuth:TokenIssuance'
  const inFile = `  SECURITY__AGENTAUTH__TOKENISSUANCE__SECRET: the text of ${file}, "$(cat ${file})"`
  const set = `  ${name}:Secret, as it is configured now`
  // The secret may be set for the gateways to come: the one on the folder then ran with its file.
  const either = existsSync(file)
    ? [`${inFile},`, `${set.replace('  ', '  or ')}, if the gateway on the folder ran with it`]
    : [set]
  const signing = Secret === undefined ? [inFile] : either
  const previous = PreviousSecrets.length === 0 ? [] : [`  ${name}:PreviousSecrets, as they are configured now`]
  const sealing = Security.Sealing.Secret === undefined ? [] : ['  Security:Sealing:Secret, as it is configured now']
  return [
    'every gateway on the database needs these keys, or held requests cannot be sent:',
    ...signing,
    ...previous,
    ...sealing,
  ]
}
