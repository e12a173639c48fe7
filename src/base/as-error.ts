/** What a `catch` clause got, as an error. Node and the libraries throw nothing else, but the language allows it. */
export function asError(caught: unknown): NodeJS.ErrnoException {
  return caught instanceof Error ? caught : new Error(String(caught))
}
