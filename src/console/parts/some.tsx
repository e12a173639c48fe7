import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'

/** Items that are drawn at once. */
const atOnce = 100

/** The first items of a list, and what shows more of them; it says how many follow. */
export function useSome<T>(items: readonly T[], first = atOnce): readonly [readonly T[], ComponentChildren] {
  const [count, setCount] = useState(first)
  const more = items.length > count && (
    <button type="button" onClick={() => setCount(count * 4)}>
      {(items.length - count).toLocaleString('en')} more
    </button>
  )
  return [items.slice(0, count), more]
}
