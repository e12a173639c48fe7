/** Tells when the fence of a gateway falls: what is under way then rests on rights that may be gone. */
import type { Fence } from './fence.ts'

/**
 * Longest time between two looks, milliseconds. One falls due when the time of the fence is up. The others find a fence
 * that was dropped, or a wall clock that jumped.
 */
const lookMs = 250

/** Watches in the thread that made it. */
export class FenceWatch {
  readonly #fence: Fence
  readonly #listeners = new Set<() => void>()
  #wasOpen = false
  #timer: NodeJS.Timeout | undefined

  constructor(fence: Fence) {
    this.#fence = fence
    this.#look()
  }

  /** `listener` is called each time the fence has fallen. Returns what ends that. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #look(): void {
    const leftMs = this.#fence.leftMs
    const isOpen = leftMs > 0
    this.#timer = setTimeout(() => this.#look(), isOpen ? Math.min(Math.ceil(leftMs), lookMs) : lookMs).unref()
    if (this.#wasOpen && !isOpen) for (const listener of [...this.#listeners]) listener()
    this.#wasOpen = isOpen
  }
}
