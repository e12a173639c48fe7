import { useEffect, useState } from 'preact/hooks'

interface Found<T> {
  /** What was found last; it stays until the next is found. */
  readonly last: T | undefined
  /** The same, if it is what is looked for now. */
  readonly current: T | undefined
}

/**
 * What `find` resolves with. What comes too late is dropped: `of` has changed, or the part of the page is gone.
 *
 * @param find undefined: there is nothing to look for
 * @param of what it is found by
 * @param restMs how long `of` must rest before the search begins, milliseconds
 */
export function useAsync<T>(
  find: ((leaving: AbortSignal) => Promise<T>) | undefined,
  of: readonly unknown[],
  restMs = 0,
): Found<T> {
  const [found, setFound] = useState<{ readonly of: readonly unknown[]; readonly value: T }>()
  useEffect(() => {
    if (find === undefined) return
    const leaving = new AbortController()
    const run = async () => {
      const value = await find(leaving.signal)
      if (!leaving.signal.aborted) setFound({ of, value })
    }
    const timer = restMs > 0 ? setTimeout(() => void run(), restMs) : void run()
    return () => {
      if (timer !== undefined) clearTimeout(timer)
      leaving.abort()
    }
  }, of)
  const isCurrent = found?.of.every((one, at) => Object.is(one, of[at]))
  return { last: found?.value, current: isCurrent ? found?.value : undefined }
}
