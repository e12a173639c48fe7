/** Takes a gateway from SQLite to PostgreSQL, and back. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { verifyTrail } from '../audit/trail.ts'
import { schemaName } from '../config/formats.ts'
import { StartupError } from '../errors.ts'
import { type Copied, copyTables, type Ends, trailOf } from '../storage/copy.ts'
import type { PostgresSettings } from '../storage/postgres/settings.ts'
import { fillPostgres, readPostgres } from '../storage/postgres/whole.ts'
import type { Db } from '../storage/schema.ts'
import { fillSqlite, readSqlite } from '../storage/sqlite/whole.ts'
import { type Configuration, configHelp, configOption, readConfiguration } from './configuration.ts'
import { readArgs, type Shell, UsageError } from './shell.ts'

export const help = `usage: agent-gateway storage copy --from data --to postgres://user@host/database [OPTIONS]
       agent-gateway storage copy --from postgres://user@host/database --to data [OPTIONS]

Copies everything of a gateway from the data folder (SQLite) to an empty PostgreSQL schema, or back: agents and their
keys, policies, held requests with their sealed bodies and answers, grants, seen tools and the audit trail. Stop the
gateways first. The copy is made completely or not at all. Before it counts, every table is read back, and the audit
trail is verified link by link; the last hash is printed. The source stays as it is.

  --from, --to   a data folder, or postgres://user:password@host:port/database
                 Other users of this machine can read arguments (ps). Put an address with a password into the
                 environment instead: AGENT_GATEWAY_STORAGE_FROM, AGENT_GATEWAY_STORAGE_TO.
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

/** Reads or fills one of the ends. */
interface End {
  /** Path of a data folder; undefined for a database. */
  readonly folder: string | undefined
  read<T>(work: (db: Db) => Promise<T>): Promise<T>
  fill<T>(work: (db: Db) => Promise<T>): Promise<T>
}

interface Result {
  readonly copied: readonly Copied[]
  readonly lastHash: string
}

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, options, Number.POSITIVE_INFINITY)
  // An operand may be an address with a password: it is not repeated.
  if (positionals.length > 0) throw new UsageError('name the source with --from and the target with --to')
  const configuration = readConfiguration(shell, values.config)
  const end = (name: 'from' | 'to') => openEnd(shell, { name, ...values, given: values[name] })
  const [from, to] = [end('from'), end('to')]
  if ((from.folder === undefined) === (to.folder === undefined)) {
    throw new UsageError('one of --from and --to must be a data folder, the other one postgres://...')
  }
  const proceed = createBrake(shell)
  const { copied, lastHash } = await from
    .read(async source => {
      // First, so that no transaction of the target waits for it.
      const lastHash = await verified(source, 'source')
      return to.fill(target => copyVerified({ from: source, to: target, proceed }, lastHash))
    })
    .catch(error => {
      throw inOptions(error, to.folder === undefined ? '--to' : '--from')
    })
  for (const { table, rows } of copied) shell.print(`${table.padEnd(14)}${rows}`)
  shell.print(`the audit trail was verified at the target; the last hash is ${lastHash}`)
  for (const line of from.folder === undefined ? keysOfFolder : keysOfDatabase(configuration, from.folder)) {
    shell.print(line)
  }
  return 0
}

/** @param before hash of the last record of the source */
async function copyVerified(ends: Ends, before: string): Promise<Result> {
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

interface Named {
  readonly name: 'from' | 'to'
  readonly given: string | undefined
  readonly schema: string
  readonly tls: string
  readonly 'ca-file'?: string | undefined
}

function openEnd(shell: Shell, named: Named): End {
  const { name } = named
  const place = named.given ?? shell.env[`AGENT_GATEWAY_STORAGE_${name.toUpperCase()}`]
  if (place === undefined || place === '') throw new UsageError(`--${name} is missing`)
  if (/^postgres(ql)?:/i.test(place)) return databaseEnd(shell, toSettings(place, named))
  if (/[=@]|:\/\//.test(place) && !existsSync(place)) {
    throw new StartupError(`--${name}: must be a data folder or postgres://user:password@host:port/database`)
  }
  const folder = resolve(place)
  return {
    folder,
    read: work => readSqlite(folder, work),
    fill: work => fillSqlite(folder, work),
  }
}

function databaseEnd(shell: Shell, settings: PostgresSettings): End {
  const onWatch = (names: string): void =>
    shell.complain(`registered, and watched for a minute to see whether they run: ${names}`)
  return {
    folder: undefined,
    read: work => readPostgres(settings, { onWatch }, work),
    fill: work => fillPostgres(settings, work),
  }
}

function toSettings(connectionString: string, { schema, tls, 'ca-file': caFile }: Named): PostgresSettings {
  const problem = schemaName(schema)
  if (problem !== undefined) throw new StartupError(`--schema: ${problem}`)
  if (tls !== 'VerifyFull' && tls !== 'Off') throw new StartupError('--tls: must be VerifyFull or Off')
  return { connectionString, schema, tls, caFile, poolSize: 1 }
}

/** The problem in the words of this command, which reads no settings of the database. */
function inOptions(error: unknown, name: string): unknown {
  if (!(error instanceof StartupError)) return error
  const message = error.message
    .replaceAll('Storage:PostgreSQL:ConnectionString', name)
    .replaceAll('Storage:PostgreSQL:Tls', '--tls')
    .replaceAll(/(Storage:PostgreSQL:)?CaFile/g, '--ca-file')
  return new StartupError(message)
}

const keysOfFolder = [
  'A gateway on the folder needs the same Security:AgentAuth:TokenIssuance:Secret and Security:Sealing:Secret as those on',
  'the database: without them held requests cannot be sent.',
]

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
