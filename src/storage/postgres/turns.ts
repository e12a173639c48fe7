/** The connection of the turns: it listens, and is dropped when a turn fails or takes too long. */
import pg, { type Client } from 'pg'
import { type Clock, inTime } from '../../runtime/clock.ts'
import { StoreError } from '../store-error.ts'
import { configOf, cutOff, endClient, watchClient } from './connection.ts'
import { type PostgresSettings, pastPooler } from './settings.ts'

/** The types lack these methods. */
export interface TurnClient extends Client {
  ref(): void
  unref(): void
}

/** Shortest and longest pause before a connection is tried again, milliseconds. */
const retryMs = 100
const maxRetryMs = 1_000

/**
 * A turn is planned once: the server takes several times as long to plan it as to run it. A plan from a time when the tables
 * were short must not read them whole once they have grown. The server takes plans by indexes alone for expensive, and
 * version 15 would compile them at each turn.
 */
export const planOnce = 'set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set jit = off'

/** Why gateways are woken: others wait for a change, or only events have come. */
export type Wake = 'changes' | 'events'

export interface TurnsOptions {
  readonly settings: PostgresSettings
  /** Longest time that a turn takes, milliseconds. */
  readonly limitMs: number
  readonly clock: Clock
  /** Another gateway has changed something, or the connection is to be tried again. */
  readonly onWake: (why: Wake) => void
}

export class FeedTurns {
  readonly #options: TurnsOptions
  readonly #channel: string
  #client: TurnClient | undefined
  #failures = 0
  #lastMs = 0
  #retry: NodeJS.Timeout | undefined

  constructor(options: TurnsOptions) {
    this.#options = options
    // The name of a channel is an identifier.
    this.#channel = `"agent_gateway.${options.settings.schema}"`
  }

  /** Time that the last turn took, milliseconds. */
  get lastMs(): number {
    return this.#lastMs
  }

  /** @throws what kept the turn from being done; its connection is gone then */
  async run(work: (client: TurnClient) => Promise<void>): Promise<void> {
    const { limitMs, clock } = this.#options
    const begun = clock.steady()
    const turn = async () => {
      const client = this.#client ?? (await this.#connect())
      client.ref()
      await work(client)
      // An idle store does not keep the process running.
      client.unref()
    }
    try {
      await inTime(turn(), limitMs, () => Promise.reject(new StoreError('A turn took too long')))
      this.#failures = 0
      this.#lastMs = clock.steady() - begun
    } catch (error) {
      // What was given up must not go on later: the next turn knows more by then.
      if (this.#client !== undefined) cutOff(this.#client)
      this.#client = undefined
      this.#again()
      throw error
    }
  }

  /** Wakes all gateways. Nothing is lost when it does not reach them. */
  wake(why: Wake): void {
    this.#client?.query(`notify ${this.#channel}, '${why}'`).catch(() => {})
  }

  async close(): Promise<void> {
    clearTimeout(this.#retry)
    if (this.#client !== undefined) await endClient(this.#client)
  }

  async #connect(): Promise<TurnClient> {
    // It has the methods that the types lack.
    const client = new pg.Client(configOf(pastPooler(this.#options.settings))) as TurnClient
    this.#client = client
    watchClient(client)
    client.on('notification', ({ payload }) => this.#options.onWake(payload === 'events' ? 'events' : 'changes'))
    client.once('end', () => {
      if (this.#client === client) this.#client = undefined
    })
    await client.connect()
    await client.query(`${planOnce}; listen ${this.#channel}`)
    return client
  }

  #again(): void {
    const pause = Math.min(retryMs * 2 ** this.#failures++, maxRetryMs)
    clearTimeout(this.#retry)
    this.#retry = setTimeout(this.#options.onWake, pause, 'changes').unref()
  }
}
