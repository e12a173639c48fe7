import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientBase } from 'pg'
import { StartupError } from '../../base/refusals.ts'
import type { GatewayReport, PeerRow, Peers } from '../../fleet/peers.ts'
import { DisagreementError, disagreement, type Terms } from '../../fleet/terms.ts'
import { isOlder } from '../../fleet/version.ts'
import { registerLock } from './steps.ts'

/** This process among the gateways. */
export interface Self extends Terms {
  /** UUID, random for each process. */
  readonly id: string
  readonly version: string
  /** When it started, milliseconds since 1970. */
  readonly started: number
  report: GatewayReport
}

/** Pause between attempts to register, milliseconds. */
const pauseMs = 250

type Client = Pick<ClientBase, 'query'>

/** The row of this gateway among those that share the schema. */
export class Member {
  readonly #self: Self
  readonly #peers: Peers
  /** What the others can read in it. */
  #report: GatewayReport | undefined

  constructor(self: Self, peers: Peers) {
    this.#self = self
    this.#peers = peers
  }

  /**
   * Enters this gateway. It does not serve yet: others need not wait for it.
   *
   * @param sent when the last look was sent
   * @throws DisagreementError when it cannot serve together with another one
   */
  async register(client: Client, sent: number): Promise<void> {
    await client.query('begin')
    await client.query('select pg_advisory_xact_lock($1)', [registerLock])
    await assertNotOutdated(client, this.#self.version)
    const { rows } = await client.query<Terms & PeerRow>(
      'select id, beat, name, "fenceMs", signs, accepts from members',
    )
    for (const other of rows) {
      const problem = disagreement(this.#self, other)
      if (problem === undefined) continue
      // One that cannot serve any more must register again, and is refused then.
      const isGone = this.#peers.isFenced(other.id, sent) && (await remove(client, other))
      if (!isGone) throw new DisagreementError(problem, other.id)
    }
    const { id, name, version, started, fenceMs, signs, accepts, report } = this.#self
    await client.query(
      `insert into members (id, beat, applied, name, version, started, "fenceMs", signs, accepts, digests, addresses)
        values ($1, $2, -1, $3, $4, $5, $6, $7, $8, $9, $10) on conflict do nothing`,
      [id, randomInt(2 ** 47), name, version, started, fenceMs, signs, accepts, ...columnsOf(report)],
    )
    await client.query('commit')
    this.#report = report
  }

  /**
   * Takes a first turn, in which it registers.
   *
   * @throws what keeps it from that
   */
  async join(turn: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await turn()
      } catch (error) {
        if (!this.#mayJoinLater(error)) throw error
        await sleep(pauseMs)
      }
    }
  }

  /** The other one has taken no turn since it was seen: it may have stopped. */
  #mayJoinLater(error: unknown): boolean {
    if (!(error instanceof DisagreementError)) return false
    return !this.#peers.all.some(({ row, hasTurned }) => row.id === error.other && hasTurned)
  }

  /** Keeps the row as it must be, and removes those of gateways that are gone. */
  async tidy(client: Client, sent: number): Promise<void> {
    for (const row of this.#peers.gone(sent)) await remove(client, row)
    const { id, report } = this.#self
    if (this.#report === report) return
    await client.query('update members set digests = $2, addresses = $3 where id = $1', [id, ...columnsOf(report)])
    this.#report = report
  }

  async leave(client: Client): Promise<void> {
    await client.query(`${deletion} where id = $1 ${forfeiting}`, [this.#self.id])
  }
}

const columnsOf = ({ digests, addresses }: GatewayReport) => [JSON.stringify(digests), addresses]

/** What a gateway that is gone has leased of budgets counts as spent. */
const deletion = 'with gone as (delete from members'
const forfeiting = 'returning id) select forfeit_spend(array[id::text]) from gone'

/** Whether it was there, and had taken no turn since it was seen. */
async function remove(client: Client, { id, beat }: Pick<PeerRow, 'id' | 'beat'>): Promise<boolean> {
  const { rowCount } = await client.query(`${deletion} where id = $1 and beat = $2 ${forfeiting}`, [id, beat])
  return rowCount === 1
}

/** The schema may have changed since this gateway started. */
async function assertNotOutdated(client: Client, version: string): Promise<void> {
  const { rows } = await client.query<{ needs: string }>('select needs from fleet')
  const needs = rows[0]?.needs ?? version
  if (isOlder(version, needs))
    throw new StartupError(`The database needs version ${needs} of the gateway or a later one.`)
}
