/** Where a request went, and how long its body was. */
export interface SentBytes {
  readonly host: string
  readonly bytes: number
}

/** To one host: there may be none. */
interface Bodies {
  times: number
  bytes: number
}

/** The activity of an agent since the last delta was sent to others. */
export class ActivityDelta {
  readonly agentId: string
  /** Time of the latest event, wall clock milliseconds since the epoch. */
  at = Number.NEGATIVE_INFINITY
  request = 0
  denied = 0
  held = 0
  humanDenied = 0
  toolChanged = 0
  /** By hosts that were not used for a while, or got a body. */
  readonly sent = new Map<string, Bodies>()
  readonly #log: { delta: ActivityDelta | undefined }

  /** @param log has this delta while it grows */
  constructor(agentId: string, log: { delta: ActivityDelta | undefined }) {
    this.agentId = agentId
    this.#log = log
  }

  /**
   * Call it for each addition. An event can be noted long after it happened; the other additions must not get its old time.
   */
  touch(now: number): void {
    if (now > this.at) this.at = now
  }

  send({ host, bytes }: SentBytes): void {
    const sent = this.sent.get(host) ?? { times: 0, bytes: 0 }
    if (bytes > 0) sent.times += 1
    sent.bytes += bytes
    this.sent.set(host, sent)
  }

  /** Ends the delta: later activity is in the next one. */
  end(): void {
    this.#log.delta = undefined
  }
}
