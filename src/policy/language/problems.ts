/** One mistake in a policy document. */
export interface PolicyProblem {
  /** `E_...`, stable. */
  readonly code: ProblemCode
  /** Place in the document: `rules[0].conditions[1]`; empty for the document itself. */
  readonly path: string
  readonly message: string
}

export type ProblemCode =
  | 'E_NAME'
  | 'E_DUPLICATE'
  | 'E_EFFECT'
  | 'E_PRIORITY'
  | 'E_CONDITIONS'
  | 'E_CONDITION'
  | 'E_EMPTY_GROUP'
  | 'E_FIELD'
  | 'E_OPERATOR'
  | 'E_VALUE'
  | 'E_UNKNOWN_KEY'
  | 'E_LIMIT'
  | 'E_YAML'

/** Nobody reads more; a hostile document has millions. */
const maxProblems = 1_000

/** Mistakes as they are found; all are reported together. */
export class Problems {
  readonly found: PolicyProblem[] = []

  add(code: ProblemCode, path: string, message: string): void {
    if (this.found.length < maxProblems) this.found.push({ code, path, message })
  }
}

/** `, did you mean X?` when one of `known` is close to `word`; otherwise empty. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const wanted = word.toLowerCase().slice(0, 64)
  let best = ''
  let least = Math.ceil(wanted.length / 3) + 1
  for (const candidate of known) {
    const distance = editDistance(wanted, candidate.toLowerCase(), least)
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best === '' ? '' : `, did you mean ${best}?`
}

/** Insertions, deletions and changes between two words; `enough` or more is not told apart. */
function editDistance(left: string, right: string, enough: number): number {
  if (Math.abs(left.length - right.length) >= enough) return enough
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let row = 1; row <= left.length; row++) {
    const current = [row]
    for (let column = 1; column <= right.length; column++) {
      const change = previous[column - 1]! + (left[row - 1] === right[column - 1] ? 0 : 1)
      current.push(Math.min(change, previous[column]! + 1, current[column - 1]! + 1))
    }
    previous = current
  }
  return previous[right.length]!
}
