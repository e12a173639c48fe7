import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/** Above that of the process. With 5 a thread gets a quarter of a core that it shares with threads serving requests. */
const niceness = 5
/** The lowest priority that there is. */
const max = 19

/**
 * Makes this thread give way to those that serve requests, when they compete for a core. Linux schedules threads one
 * by one; elsewhere this does nothing.
 */
export function giveWay(): void {
  try {
    // `<process>/task/<thread>`, of the thread that reads it.
    setPriority(Number(readlinkSync('/proc/thread-self').split('/')[2]), Math.min(max, getPriority() + niceness))
  } catch {
    // Without it everything works, only less smoothly on a busy machine.
  }
}
