import { longestFence } from '../fleet/peers.ts'
import { memberName, schemaName } from './formats.ts'
import { choice, integer, optional, secret, text } from './setting.ts'

/** Settings under `Storage`. */
export const storage = {
  Provider: choice(
    ['Sqlite', 'PostgreSQL'],
    'Sqlite',
    'Where agents, policies, held requests, grants and the audit trail are kept: gateway.db in DataDirectory, or a database. See docs/postgresql.md.',
  ),
  DataDirectory: text('data', 'Folder of gateway.db, bootstrap.json and signing.key, relative to gateway.yaml.'),
  Sqlite: {
    TimeoutSeconds: integer(2, 'A call that needs gateway.db gets 503 after this.', { min: 2, max: 10 }),
  },
  PostgreSQL: {
    ConnectionString: secret('postgres://user:password@host:port/database.'),
    ListenConnectionString: secret(
      'Address past the connection pooler in transaction mode, such as PgBouncer, that ConnectionString goes through; absent: there is none.',
    ),
    Schema: text('agent_gateway', 'Schema of the tables; the first start creates it.', schemaName),
    Tls: choice(
      ['VerifyFull', 'Off'],
      'VerifyFull',
      'VerifyFull: the certificate of the server must be trusted and name the host. Off: only for a database on this machine.',
    ),
    CaFile: optional(
      'PEM file of the authorities that are trusted, relative to gateway.yaml; absent: those of Node.js.',
    ),
    PoolSize: integer(8, 'Connections to the database; one more watches for changes.', { min: 1, max: 100 }),
    Migrate: choice(
      ['Auto', 'Check'],
      'Auto',
      'Auto: the first start of a version changes the schema. Check: such a start is refused until agent-gateway storage migrate.',
    ),
    TimeoutSeconds: integer(2, 'A call that needs the database gets 503 after this.', { min: 2, max: 10 }),
  },
}

/** Settings under `Fleet`: of several gateways on one database. */
export const fleet = {
  Name: optional('Name of this gateway in lists of all of them; absent: the host name.', memberName),
  FenceAfterSeconds: integer(
    10,
    'Without the database a gateway serves for so long; it must be the same in all of them.',
    { min: 2, max: longestFence },
  ),
  OnHistoryLoss: choice(
    ['Stop', 'Accept'],
    'Stop',
    'When the database has lost writes, after a failover for instance. Stop: no gateway serves until agent-gateway fleet accept. Accept: gateways go on with the effects of that command.',
  ),
  RateLimits: choice(
    ['Shared', 'PerGateway'],
    'Shared',
    'Shared: System:RateLimit, System:ManagementRateLimit and the limits of failed logins hold for all gateways together. PerGateway: each counts by itself.',
  ),
}
