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

/** A mistake in a condition, thrown while it is compiled. */
export class ConditionError extends Error {
  readonly code: ProblemCode
  constructor(message: string, code: ProblemCode = 'E_VALUE') {
    super(message)
    this.code = code
  }
}
