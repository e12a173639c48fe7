/**
 * One gateway at a time on a schema. The claim is the gateway's row among the members, which changes with each turn. A lock
 * of the session would not do: the server gives it up when the connection breaks, while the gateway still serves.
 */
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientBase } from 'pg'
import type { Clock } from '../../clock.ts'
import { StartupError } from '../../errors.ts'
import type { PeerRow } from '../../fleet/peers.ts'
import { schemaLock } from './commit-write.ts'
import type { Connections } from './connection.ts'

/** This process among the gateways. */
export interface Self {
  /** UUID, random for each process. */
  readonly id: string
  readonly name: string
  readonly version: string
}

/** Another gateway has taken the schema. */
export class TakenError extends Error {
  override readonly name = 'TakenError'
}

/** Pause between two looks at a gateway that may have died, milliseconds. */
const lookMs = 250

/** A gateway that runs has taken a turn in this time, milliseconds. */
const turnsMs = 1_500

type Other = Pick<PeerRow, 'id' | 'beat'> & { readonly name: string }

/** Enters this gateway among those that share the schema. */
export async function register(client: ClientBase, self: Self): Promise<void> {
  await client.query(
    'insert into members (id, beat, applied, name, version) values ($1, $2, -1, $3, $4) on conflict do nothing',
    [self.id, randomInt(2 ** 47), self.name, self.version],
  )
}

/**
 * Enters this gateway as the only one, in the place of `gone`.
 * @returns another one that is there, or has been heard of since; then nothing was changed
 */
export async function registerAlone(client: ClientBase, self: Self, gone?: Other): Promise<Other | undefined> {
  await client.query('begin')
  try {
    await client.query(`select pg_advisory_xact_lock(${schemaLock})`)
    if (gone !== undefined) await client.query('delete from members where id = $1 and beat = $2', [gone.id, gone.beat])
    const { rows } = await client.query<Other>('select id, beat, name from members where id <> $1 limit 1', [self.id])
    const [other] = rows
    if (other === undefined) await register(client, self)
    await client.query(other === undefined ? 'commit' : 'rollback')
    return other
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

export interface ClaimParts {
  readonly connections: Connections
  readonly self: Self
  readonly clock: Clock
  /** A gateway that took no turn for so long serves no more, milliseconds. */
  readonly silentMs: number
  /** Called with the name of a gateway that stopped without a word, and may still serve. */
  readonly onWait: (name: string) => void
}

/**
 * Takes the schema for this gateway alone; one that died is waited for until it cannot serve any more.
 * @throws StartupError when another gateway uses it
 */
export async function claim({ connections, self, clock, silentMs, onWait }: ClaimParts): Promise<void> {
  const client = await connections.acquire()
  try {
    let told = false
    let first: { readonly other: Other; readonly since: number } | undefined
    for (;;) {
      const isSilent = first !== undefined && clock.steady() - first.since > silentMs
      const other = await registerAlone(client, self, isSilent ? first?.other : undefined)
      if (other === undefined) return
      first ??= { other, since: clock.steady() }
      if (other.id !== first.other.id || other.beat !== first.other.beat) throw new StartupError(inUse(other.name))
      await sleep(lookMs)
      if (!told && clock.steady() - first.since > turnsMs) {
        told = true
        onWait(other.name)
      }
    }
  } finally {
    client.release(true)
  }
}

const inUse = (name: string): string =>
  `Another gateway (on ${name}) uses this schema, and one gateway can use it at a time. Stop that one first, or set another Storage:PostgreSQL:Schema.`
