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

/** What an agent did since others were told last. */
export class ActivityDelta {
  readonly agentId: string
  /** The latest of it, wall clock milliseconds since the epoch. */
  at = Number.NEGATIVE_INFINITY
  request = 0
  denied = 0
  held = 0
  humanDenied = 0
  toolChanged = 0
  /** By hosts that were not used for a while, or got a body. */
  readonly sent = new Map<string, Bodies>()
  readonly #log: { delta: ActivityDelta | undefined }

  /** @param log where it is found while it grows */
  constructor(agentId: string, log: { delta: ActivityDelta | undefined }) {
    this.agentId = agentId
    this.#log = log
  }

  /** Something is added. An event can be noted long after it happened: what is added with it must not become as old. */
  touch(now: number): void {
    if (now > this.at) this.at = now
  }

  send({ host, bytes }: SentBytes): void {
    const sent = this.sent.get(host) ?? { times: 0, bytes: 0 }
    if (bytes > 0) sent.times += 1
    sent.bytes += bytes
    this.sent.set(host, sent)
  }

  /** It grows no more: what comes later is told later. */
  end(): void {
    this.#log.delta = undefined
  }
}
