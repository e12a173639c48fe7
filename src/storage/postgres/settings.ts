/** The address of the database as it is configured, checked. */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { asError } from '../../base/as-error.ts'
import { percentDecoded } from '../../base/percent.ts'
import { StartupError } from '../../base/refusals.ts'

export interface PostgresSettings {
  /** postgres://user:password@host:port/database. A secret. */
  readonly connectionString: string
  /** Past a connection pooler in transaction mode, which `connectionString` goes through then. A secret. */
  readonly listenConnectionString?: string | undefined
  /** Lower-case letters, digits and underscores. */
  readonly schema: string
  /** `Off` only for this machine. */
  readonly tls: 'VerifyFull' | 'Off'
  /** Path of the certificates that are trusted, PEM; those of the system when absent. */
  readonly caFile?: string | undefined
  readonly poolSize: number
  /** Whether a start changes the schema, or is refused when it must be changed. `Auto` when absent. */
  readonly migrate?: 'Auto' | 'Check'
  /** Time within which a call is answered; 2 when absent. */
  readonly timeoutSeconds?: number
}

/** Time within which a call is answered, milliseconds. */
export const timeoutOf = ({ timeoutSeconds = 2 }: PostgresSettings): number => timeoutSeconds * 1_000

/** What a client connects to. */
export type DatabaseAddress = ReturnType<typeof parseAddress>

const setting = 'Storage:PostgreSQL:ConnectionString'

/** Those of a connection that goes past the pooler. */
export const pastPooler = (settings: PostgresSettings): PostgresSettings => ({
  ...settings,
  connectionString: settings.listenConnectionString ?? settings.connectionString,
  listenConnectionString: undefined,
})

/** @throws StartupError that says what to change, and never the password */
export function parseAddress({ connectionString, tls, caFile }: PostgresSettings) {
  const url = URL.parse(connectionString)
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol)) {
    throw new StartupError(
      `${setting}: must be postgres://user:password@host:port/database; in the password, write %2F for /, %3F for ? and %23 for #`,
    )
  }
  if (url.search !== '' || url.hash !== '') {
    throw new StartupError(`${setting}: must have no parameters; TLS is set by Storage:PostgreSQL:Tls and CaFile`)
  }
  const [user, password, database] = [url.username, url.password, url.pathname.slice(1)].map(decoded)
  const host = decoded(url.hostname).replace(/^\[(.*)\]$/, '$1')
  if (!host || !user || !database) throw new StartupError(`${setting}: must name a user, a host and a database`)
  const isLocal = host.startsWith('/') || host === 'localhost' || host === '::1' || /^127\./.test(host)
  if (tls === 'Off' && !isLocal) {
    throw new StartupError(`Storage:PostgreSQL:Tls: must be VerifyFull, because ${host} is another machine`)
  }
  const port = url.port === '' ? 5432 : Number(url.port)
  const ssl = tls === 'Off' || host.startsWith('/') ? false : tlsTo(host, caFile)
  return { host, port, user, password: password ?? '', database, ssl }
}

function decoded(text: string): string {
  const plain = percentDecoded(text)
  if (plain !== undefined) return plain
  throw new StartupError(`${setting}: every % must begin a percent-encoded character; write %25 for %`)
}

/** The certificate must be valid and name the host. */
function tlsTo(host: string, caFile: string | undefined): ConnectionOptions {
  const name = isIP(host) === 0 ? { servername: host } : {}
  const trusted = caFile === undefined ? {} : { ca: readCa(caFile) }
  return { host, rejectUnauthorized: true, minVersion: 'TLSv1.2', ...name, ...trusted }
}

function readCa(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new StartupError(`Storage:PostgreSQL:CaFile: ${path} cannot be read: ${asError(error).message}`)
  }
}
