/** The keys of an object that has no more than its type says, which `Object.keys` does not know. */
export function keysOf<R extends object>(record: R): (keyof R & string)[] {
  // The caller promises that there are no further keys.
  return Object.keys(record) as (keyof R & string)[]
}

/** The same keys, each with what `toValue` makes of its value. */
export function mapValues<K extends string, A, B>(
  record: Readonly<Record<K, A>>,
  toValue: (value: A, key: K) => B,
): Record<K, B> {
  const mapped = keysOf(record).map(key => [key, toValue(record[key], key)])
  // The keys are those of `record`.
  return Object.fromEntries(mapped) as Record<K, B>
}

/** What JSON calls an object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Forgets the oldest entry when there are more than `max`. */
export function forgetOldest<K>(
  kept: Pick<Map<K, unknown> | Set<K>, 'size' | 'delete'> & { keys(): Iterable<K> },
  max: number,
): void {
  if (kept.size <= max) return
  for (const oldest of kept.keys()) {
    kept.delete(oldest)
    return
  }
}
