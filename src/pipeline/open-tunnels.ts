/** The tunnels that agents have opened with CONNECT, idle or not. */
import type { Socket } from 'node:net'
import type { SharedAmount } from '../limits/shared-amount.ts'

export interface OpenTunnel {
  readonly agentId: string
  /** Of the key that opened it; undefined for another token. */
  readonly keyId: string | undefined
  readonly socket: Socket
  /** Ends it once what was written has left. */
  close(): void
}

export class OpenTunnels {
  readonly #places: Pick<SharedAmount, 'take' | 'give'>
  readonly #most: number
  readonly #onChange: (change: 1 | -1) => void
  readonly #byAgent = new Map<string, Set<OpenTunnel>>()

  /** @param most tunnels of one agent, in all threads */
  constructor(places: Pick<SharedAmount, 'take' | 'give'>, most: number, onChange: (change: 1 | -1) => void) {
    this.#places = places
    this.#most = most
    this.#onChange = onChange
  }

  /** False when the agent has as many as it may have. */
  open(tunnel: OpenTunnel): boolean {
    const { agentId, socket } = tunnel
    if (!this.#places.take(agentId, 1, this.#most)) return false
    const own = this.#byAgent.get(agentId) ?? new Set()
    this.#byAgent.set(agentId, own.add(tunnel))
    this.#onChange(1)
    socket.once('close', () => this.#closed(tunnel, own))
    return true
  }

  #closed(tunnel: OpenTunnel, own: Set<OpenTunnel>): void {
    own.delete(tunnel)
    if (own.size === 0) this.#byAgent.delete(tunnel.agentId)
    this.#places.give(tunnel.agentId, 1)
    this.#onChange(-1)
  }

  closeAll(agentId: string, isMeant: (tunnel: OpenTunnel) => boolean): void {
    for (const tunnel of this.#byAgent.get(agentId) ?? []) if (isMeant(tunnel)) tunnel.close()
  }
}
