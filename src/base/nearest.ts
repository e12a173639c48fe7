/** Longer words are cut: what a hostile document holds must not cost time. */
const longestWord = 64

/** `, did you mean X?` when one of the names is similar to `given`, in any letter case; otherwise empty. */
export function didYouMean(given: string, names: Iterable<string>): string {
  const name = nearest(given, names)
  return name === undefined ? '' : `, did you mean ${name}?`
}

/** The name that was probably meant by `given`, in any letter case. */
export function nearest(given: string, names: Iterable<string>): string | undefined {
  const wanted = given.toLowerCase().slice(0, longestWord)
  let best: string | undefined
  let least = Math.max(2, Math.ceil(wanted.length / 3)) + 1
  for (const name of names) {
    const distance = editDistance(wanted, name.toLowerCase(), least)
    // A name without a common letter is not similar.
    if (distance >= least || distance >= name.length) continue
    least = distance
    best = name
  }
  return best
}

/** Letters inserted, removed or replaced between two words (Levenshtein), counted up to `enough`. */
function editDistance(left: string, right: string, enough: number): number {
  if (Math.abs(left.length - right.length) >= enough) return enough
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let row = 1; row <= left.length; row++) {
    const current = [row]
    for (let column = 1; column <= right.length; column++) {
      const replaced = previous[column - 1]! + (left[row - 1] === right[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1))
    }
    previous = current
  }
  return previous[right.length]!
}
