/** The caught value as an error. Node and the libraries throw errors only, but the language allows any value. */
export function asError(caught: unknown): NodeJS.ErrnoException {
  return caught instanceof Error ? caught : new Error(String(caught))
}
