/** Goes on with a database that has lost history: what it calls unsent, granted or valid may not be so. */
import { randomUUID } from 'node:crypto'
import { StartupError } from '../../base/refusals.ts'
import { markRestored, type Restored } from '../restored.ts'
import { WriteNotes } from '../unit.ts'
import { argumentsOf, callCommitWrite, schemaLock } from './commit-write.ts'
import { DatabaseConnections } from './connection.ts'
import { withClient } from './migrate.ts'
import type { PostgresSettings } from './settings.ts'

export interface Acceptance {
  /** The history that is given up. */
  readonly epoch: string
  /** How the loss was noticed. */
  readonly why: string
  /** Milliseconds since the Unix epoch. */
  readonly now: number
}

/**
 * In one transaction: marks what may have been sent, removes grants and keys, makes tokens void, and draws a new epoch,
 * with which all gateways load everything again.
 * @returns undefined when that was done already
 */
export async function acceptHistory(
  connections: DatabaseConnections,
  { epoch, why, now }: Acceptance,
): Promise<Restored | undefined> {
  return connections.use(async client => {
    const query = (text: string, values: readonly unknown[] = []) => connections.query(client, text, values)
    async function write(renewed: string): Promise<Restored> {
      const notes = new WriteNotes(connections.over(client))
      const restored = await markRestored(notes, now, why)
      const history = { epoch: renewed, known: undefined }
      await query(callCommitWrite, argumentsOf({ id: randomUUID(), now, all: [notes], history }))
      return restored
    }
    await query('begin')
    await query(`select pg_advisory_xact_lock(${schemaLock})`)
    const { rows } = await query(
      `update fleet set epoch = gen_random_uuid(), past = past || epoch, lost = null where epoch = $1 returning epoch`,
      [epoch],
    )
    // Changes are numbered from an earlier one on: what gateways had applied says nothing about those to come.
    await query('update members set applied = 0 where applied > 0')
    const restored = rows.length === 0 ? undefined : await write(rows[0].epoch)
    await query('commit')
    return restored
  })
}

/** What the command accepts. */
export interface Accepted extends Restored {
  readonly why: string
}

/**
 * Accepts the loss that gateways have found, or one that nobody can find: that of a dump which was put back.
 * @throws StartupError when no gateway has found a loss, and no dump is said to be put back
 */
export async function acceptLoss(settings: PostgresSettings, isPutBack: boolean, now: number): Promise<Accepted> {
  const connections = new DatabaseConnections({ ...settings, poolSize: 1 })
  try {
    const [found] = await withClient(connections, settings, async client => {
      const { rows } = await client.query<{ epoch: string; lost: string | null }>('select epoch, lost from fleet')
      return rows
    })
    if (found === undefined) throw new StartupError(`The schema ${settings.schema} has no gateways.`)
    if (found.lost === null && !isPutBack) throw new StartupError(nothingLost)
    const why = found.lost ?? 'a dump was put back'
    const restored = await acceptHistory(connections, { epoch: found.epoch, why, now })
    if (restored === undefined) throw new StartupError('Somebody else has accepted the loss meanwhile.')
    return { ...restored, why }
  } finally {
    await connections.close()
  }
}

const nothingLost =
  'No gateway has found that the database lost history. If you put a dump back, which gateways cannot always find, add --put-back.'
