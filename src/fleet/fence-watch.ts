/** Tells when the fence of a gateway falls: what is under way then rests on rights that may be gone. */
import type { Fence } from './fence.ts'

/**
 * Longest time between two looks, milliseconds. One falls due when the time of the fence is up. The others find a fence
 * that was dropped, or a wall clock that jumped.
 */
const lookMs = 250

export type FenceWatch = ReturnType<typeof watchFence>

/** Watches in the thread that calls it. */
export function watchFence(fence: Pick<Fence, 'leftMs'>) {
  const listeners = new Set<() => void>()
  let wasOpen = false
  let timer: NodeJS.Timeout
  function look(): void {
    const { leftMs } = fence
    const isOpen = leftMs > 0
    timer = setTimeout(look, isOpen ? Math.min(Math.ceil(leftMs), lookMs) : lookMs).unref()
    if (wasOpen && !isOpen) for (const listener of [...listeners]) listener()
    wasOpen = isOpen
  }
  look()
  return {
    /** `listener` is called each time the fence has fallen. Returns what ends that. */
    subscribe(listener: () => void): () => void {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close: () => clearTimeout(timer),
  }
}
