/** The tunnels that agents have opened with CONNECT, idle or not. */
import type { Socket } from 'node:net'
import type { SharedAmount } from '../limits/shared-table.ts'

export interface OpenTunnel {
  readonly agentId: string
  /** Key of the agent that opened it; undefined for another kind of token. */
  readonly keyId: string | undefined
  readonly socket: Socket
  /** Ends the tunnel after the written bytes are sent. */
  close(): void
}

export class OpenTunnels {
  readonly #counts: Pick<SharedAmount, 'take' | 'give'>
  readonly #max: number
  readonly #onChange: (change: 1 | -1) => void
  readonly #byAgent = new Map<string, Set<OpenTunnel>>()

  /** @param max tunnels of one agent, in all threads */
  constructor(counts: Pick<SharedAmount, 'take' | 'give'>, max: number, onChange: (change: 1 | -1) => void) {
    this.#counts = counts
    this.#max = max
    this.#onChange = onChange
  }

  /** False when the agent has the maximum of tunnels. */
  open(tunnel: OpenTunnel): boolean {
    const { agentId, socket } = tunnel
    if (!this.#counts.take(agentId, 1, this.#max)) return false
    const ofAgent = this.#byAgent.get(agentId) ?? new Set()
    this.#byAgent.set(agentId, ofAgent.add(tunnel))
    this.#onChange(1)
    socket.once('close', () => this.#closed(tunnel, ofAgent))
    return true
  }

  #closed(tunnel: OpenTunnel, ofAgent: Set<OpenTunnel>): void {
    ofAgent.delete(tunnel)
    if (ofAgent.size === 0) this.#byAgent.delete(tunnel.agentId)
    this.#counts.give(tunnel.agentId, 1)
    this.#onChange(-1)
  }

  closeAll(agentId: string, isMeant: (tunnel: OpenTunnel) => boolean): void {
    for (const tunnel of this.#byAgent.get(agentId) ?? []) if (isMeant(tunnel)) tunnel.close()
  }
}
