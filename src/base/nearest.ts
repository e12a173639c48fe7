/**
 * The name a person most likely meant, for "did you mean": the nearest by edits, if few of its letters differ.
 * Letter case does not count.
 */
export function nearest(given: string, names: readonly string[]): string | undefined {
  const wanted = given.toLowerCase()
  const ranked = names
    .map(name => ({ name, edits: editDistance(wanted, name.toLowerCase()) }))
    .filter(({ name, edits }) => edits < name.length && edits <= Math.max(2, name.length / 3))
    .sort((a, b) => a.edits - b.edits)
  return ranked[0]?.name
}

/** Least number of letters inserted, removed or replaced (Levenshtein). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}
