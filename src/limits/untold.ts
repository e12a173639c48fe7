/** Where a request went, and how long its body was. */
export interface Sent {
  readonly host: string
  readonly bytes: number
}

/** To one host: there may be none. */
interface Bodies {
  times: number
  bytes: number
}

/** What an agent did since others were told last. */
export class Untold {
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
  readonly #log: { untold: Untold | undefined }

  /** @param log where it is found while it grows */
  constructor(agentId: string, log: { untold: Untold | undefined }) {
    this.agentId = agentId
    this.#log = log
  }

  /** Something is added. An event can be noted long after it happened: what is added with it must not become as old. */
  touch(now: number): void {
    if (now > this.at) this.at = now
  }

  send({ host, bytes }: Sent): void {
    const sent = this.sent.get(host) ?? { times: 0, bytes: 0 }
    if (bytes > 0) sent.times += 1
    sent.bytes += bytes
    this.sent.set(host, sent)
  }

  /** It grows no more: what comes later is told later. */
  end(): void {
    this.#log.untold = undefined
  }
}
