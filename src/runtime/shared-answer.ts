import type { Clock } from './clock.ts'

/**
 * One outcome for all who ask while it is made, and for a while after it.
 *
 * @param freshMs how long it holds, milliseconds
 * @param make must not reject
 */
export function shareFor<T>(
  freshMs: number,
  { steady }: Pick<Clock, 'steady'>,
  make: () => Promise<T>,
): () => Promise<T> {
  let last: Promise<T> | undefined
  /** Steady milliseconds; infinite while one is made. */
  let freshUntil = 0
  const renew = async (): Promise<T> => {
    freshUntil = Number.POSITIVE_INFINITY
    const made = await make()
    freshUntil = steady() + freshMs
    return made
  }
  return () => {
    if (last === undefined || steady() >= freshUntil) last = renew()
    return last
  }
}
