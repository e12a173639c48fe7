/** Bodies to one host: there may be none. */
interface Sent {
  times: number
  bytes: number
}

/** What an agent did since others were told last. */
export class Untold {
  readonly agentId: string
  /** When it began. */
  readonly at: number
  request = 0
  denied = 0
  held = 0
  humanDenied = 0
  toolChanged = 0
  /** By hosts that were not used for a while, or got a body. */
  readonly sent = new Map<string, Sent>()
  readonly #log: { untold: Untold | undefined }

  /** @param log where it is found while it grows */
  constructor(agentId: string, at: number, log: { untold: Untold | undefined }) {
    this.agentId = agentId
    this.at = at
    this.#log = log
  }

  send({ host, bytes }: { readonly host: string; readonly bytes: number }): void {
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
